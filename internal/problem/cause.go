package problem

// depths are those of the codes that can be the effect of another problem. A cause has a smaller depth than
// its effects; what is not listed is a cause, and has 0.
var depths = map[Code]uint8{
	// Keys, pins, names and clocks decide whose word counts. From there on, what is refused is an effect.
	RecordAhead: 1, ClockSetBack: 1, ClockBehind: 1, ClockDiffers: 1, StatementMissing: 1, StatementOlder: 1, StatementWithdrawn: 1,
	RecordUnsigned: 1, RecordForged: 1, NodeUnproven: 1, StrangersRefused: 1, RecordRejected: 1, PartFailed: 1,

	// A node that is refused is not heard, a statement whose renewal is refused ends, and a tunnel
	// without a key carries nothing.
	StatementLate: 2, ClusterHeld: 2, ClusterQuiet: 2, NodeDead: 2, NodeQuiet: 2, NodeHeld: 2, NoTunnel: 2,

	// A daemon that is gone answers no seed. A tunnel can fail where gossip works, and not the other way round.
	SeedSilent: 3, UDPBlocked: 3, TunnelNever: 3, TunnelSilent: 3, TunnelOneWay: 3, TunnelNarrow: 3, TunnelLossy: 3, TunnelsAllSilent: 3,

	// Services have what clusters, nodes and maps leave them.
	FrontendRefused: 4, ImportKept: 4, FamilyWithoutEndpoints: 4, ServiceUnserved: 4, EverybodyTrusted: 4,
}

// Depth returns how many steps of cause and effect there can be before a problem with the code; 0 for what is
// only a cause.
func (c Code) Depth() int { return int(depths[c]) }
