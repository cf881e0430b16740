package node

import (
	"net"
	"time"
)

// proxyPort is where kube-proxy, and what replaces it, tells load balancers that it works.
const proxyPort = "10256"

// Proxied reports whether kube-proxy runs on this node.
func Proxied() bool {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", proxyPort), time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}
