// Package optout keeps the list of cgroups whose connections the load balancer leaves alone, in the
// pinned maps. The daemon's entries and the operator's are kept side by side.
//
// The input is paths of cgroups; the output is map entries. The package works on the pins alone,
// with or without a daemon. It must not know why a cgroup opts out, nor how programs are loaded.
package optout
