// Package socklb is the socket load balancer: it loads the programs of ../../bpf, attaches them, and holds
// datapath.Frontends in eBPF maps, which the programs consult once per connect() or sendto().
//
// Input is the wanted frontends and the cgroups that opt out; output is pinned maps, programs and links that
// work on without the process. Below it, layout has the keys, values and pins that all of them share, inspect
// looks into them, optout changes who is left alone, and cgroup finds cgroups: none of these needs a daemon. It
// must not know services, clusters or why a backend was chosen, and it starts no goroutines.
package socklb
