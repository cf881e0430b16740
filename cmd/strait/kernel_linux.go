package main

import (
	"net"
	"time"

	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/optout"
)

func realKernel() kernel {
	return kernel{
		open:         func(pins string) (pinnedMaps, error) { return inspect.OpenReader(pins) },
		optOuts:      optout.List,
		checkOptOut:  optout.Check,
		addOptOut:    optout.Add,
		removeOptOut: optout.Remove,
		proxied:      proxied,
	}
}

func proxied() bool {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", proxyPort), time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}
