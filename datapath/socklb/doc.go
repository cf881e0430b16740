// Package socklb is the socket load balancer. It loads the programs of ../../bpf, attaches them,
// and stores datapath.Frontends in eBPF maps, which the programs consult once per connect() or
// sendto().
//
// The input is the wanted frontends and the cgroups that opt out. The output is pinned maps,
// programs and links, which keep working without the process. The packages below it need no daemon:
// layout defines the keys, values and pins that all of them share, inspect reads the maps, optout
// changes which cgroups are left alone, and cgroup finds cgroups. Package socklb must not know
// about services, clusters or why a backend was chosen, and it starts no goroutines.
package socklb
