// Package inspect looks into the load balancer: what its maps hold and have counted, how full they
// are, and which foreign programs share its hooks.
//
// The input is the directory of its pins; the output is rows. The package attaches and changes
// nothing, never waits for the balancer and needs no daemon, so probes, the CLI and tests can use
// it at any time. It must not know how programs are loaded, nor about services and clusters. On other
// systems than Linux it has only the rows, which programs there can show.
package inspect
