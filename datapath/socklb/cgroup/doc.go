// Package cgroup finds cgroups (v2) of the machine: the one to attach to, and others by path or id, with how deep
// they are.
//
// It reads mounts, inodes and handles, and asks the kernel where this process is. It changes nothing, and must not
// know what programs do with a cgroup.
package cgroup
