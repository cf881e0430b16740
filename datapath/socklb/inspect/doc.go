// Package inspect looks into the load balancer: what its maps hold and counted, how full they are, and which programs
// of others meet its own.
//
// Input is the directory of its pins; output is rows. It attaches and changes nothing, never waits
// for the balancer and needs no daemon, so that probes, the CLI and tests may use it at any time.
// It must not know how programs are loaded, nor services and clusters.
package inspect
