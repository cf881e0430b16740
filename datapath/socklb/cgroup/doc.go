// Package cgroup finds cgroups (v2) of the machine, and how deep they are: the one to attach to,
// and others by path or id.
//
// It reads mounts, inodes and handles, and asks the kernel which cgroups this process is in. It
// changes nothing, and must not know what programs do with a cgroup.
package cgroup
