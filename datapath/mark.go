package datapath

// TunnelMark is the firewall mark of the packets that carry the tunnel, of the bits in
// TunnelMarkMask. The rule that leads to strait's routing table leaves marked packets out, so that
// they never enter the tunnel, whatever is routed.
//
// Programs on a node share the 32 bits, and most only look at some. This bit is in none of the masks
// that are known: Cilium 0x0f00 (and 0xf000 beside 0x0e00, for IPsec), Calico 0xffff0000, kube-proxy
// 0x4000 and 0x8000, the portmap plugin 0x2000, Tailscale 0xff0000, the AWS VPC CNI 0x80, Antrea
// 0x800000ff, OVN-Kubernetes 0x1, 0x2 and 0x3f0, kube-router 0x10000 and 0x20000. The mask has no
// other bit, because Cilium and Calico set theirs on packets that leave the node.
const (
	TunnelMark     = 0x1000
	TunnelMarkMask = 0x1000
)
