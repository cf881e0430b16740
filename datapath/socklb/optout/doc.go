// Package optout keeps the list of cgroups whose connections the load balancer leaves alone, in the maps that are
// pinned: the daemon's and the operator's beside each other.
//
// Input is paths of cgroups; output is map entries. It works on the pins alone, with or without a daemon. It must
// not know why a cgroup opts out, nor how programs are loaded.
package optout
