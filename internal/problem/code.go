package problem

// Code names one kind of Problem. A code never changes its meaning, and a retired code is not used
// again. docs/problems.md has a section for each: what it means, what to look at, the cure.
type Code string

// Objects as read from manifests or from the API server.
const (
	FileUnreadable      Code = "STR1001"
	FileEmpty           Code = "STR1002"
	DirectoryUnreadable Code = "STR1003"
	DirectoryNotWatched Code = "STR1004"
	NotYAML             Code = "STR1005"

	ObjectIncomplete Code = "STR1101"
	KindIgnored      Code = "STR1102"
	VersionUnknown   Code = "STR1103"
	FieldUnknown     Code = "STR1104"
	FieldType        Code = "STR1105"
	ObjectRepeated   Code = "STR1106"

	ValueInvalid        Code = "STR1201"
	SliceWithoutService Code = "STR1202"
	NodeWithoutAddress  Code = "STR1203"
	PortRepeated        Code = "STR1204"
	PortNotServed       Code = "STR1205"
	NodeMissing         Code = "STR1206"
	EndpointWithoutNode Code = "STR1207"
	SlicePortUnmatched  Code = "STR1208"

	ExportWithoutService Code = "STR1301"
	ExportImpossible     Code = "STR1302"
	NamespaceBarred      Code = "STR1303"
	GlobalImpossible     Code = "STR1304"
	AnnotationIgnored    Code = "STR1305"
)

// What clusters and nodes say of themselves, and where they contradict each other.
const (
	ClusterPrefixOverlap Code = "STR2101"
	PrefixOverlap        Code = "STR2102"
	NoTunnel             Code = "STR2103"
	AddressTaken         Code = "STR2104"
	PrefixForbidden      Code = "STR2105"
	PeerPinRefused       Code = "STR2106"
	PeersFile            Code = "STR2107"
	Contested            Code = "STR2108"

	ExportConflict          Code = "STR2201"
	GlobalPortMissing       Code = "STR2202"
	ImportBarred            Code = "STR2203"
	FamilyWithoutEndpoints  Code = "STR2204"
	ImportKept              Code = "STR2205"
	FamilyWithoutRange      Code = "STR2206"
	ExportLate              Code = "STR2207"
	PolicySkips             Code = "STR2208"
	ConfigUnused            Code = "STR2209"
	ConfigNotPinned         Code = "STR2210"
	ServiceUnserved         Code = "STR2211"
	NoAddressFree           Code = "STR2301"
	AddressCollision        Code = "STR2302"
	RecordPartLeftOut       Code = "STR2303"
	OutsideAuthority        Code = "STR2304"
	ClusterNotPinned        Code = "STR2305"
	RecordUnsigned          Code = "STR2306"
	RootDiffers             Code = "STR2307"
	RecordForged            Code = "STR2308"
	StatementLate           Code = "STR2309"
	PinsFile                Code = "STR2310"
	StatementMissing        Code = "STR2311"
	KeyRevoked              Code = "STR2312"
	NodeKeyRepeated         Code = "STR2313"
	NodeUnproven            Code = "STR2314"
	StatementOlder          Code = "STR2315"
	ClaimContested          Code = "STR2320"
	EndpointNotPod          Code = "STR2325"
	EndpointOutside         Code = "STR2326"
	NamespacePublic         Code = "STR2327"
	QuotaReached            Code = "STR2328"
	StatementWithdrawn      Code = "STR2329"
	ClusterIdentityChanged  Code = "STR2401"
	ClusterIdentityRepeated Code = "STR2402"
	NodeNameRepeated        Code = "STR2403"
)

// The socket load balancer.
const (
	MapFull          Code = "STR3101"
	MapNearlyFull    Code = "STR3102"
	HooksShared      Code = "STR3103"
	FrontendRefused  Code = "STR3104"
	MapsUnreadable   Code = "STR3105"
	OptOutIncomplete Code = "STR3106"
	PartFailed       Code = "STR3107"
	BalancerChanged  Code = "STR3108"
)

// Tunnels and routes.
const (
	PeerRefused    Code = "STR4101"
	RouteRefused   Code = "STR4102"
	NotExempted    Code = "STR4103"
	PlanIncoherent Code = "STR4104"
	RouteForeign   Code = "STR4105"
	RouteBypassed  Code = "STR4106"

	UntrackedDropped Code = "STR4107"
	TunnelRefused    Code = "STR4108"

	TunnelNever      Code = "STR4201"
	TunnelSilent     Code = "STR4202"
	TunnelOneWay     Code = "STR4203"
	TunnelLossy      Code = "STR4204"
	TunnelNarrow     Code = "STR4205"
	TunnelsAllSilent Code = "STR4206"
	TunnelsUnprobed  Code = "STR4207"
)

// Gossip and replication.
const (
	GossipKeyDiffers   Code = "STR5101"
	SeedSilent         Code = "STR5102"
	UDPBlocked         Code = "STR5103"
	SeedsFile          Code = "STR5104"
	StateFile          Code = "STR5105"
	StrangersRefused   Code = "STR5106"
	GossipProblems     Code = "STR5107"
	RecordRejected     Code = "STR5201"
	RecordNotPublished Code = "STR5202"
	RecordAhead        Code = "STR5203"
	ClockSetBack       Code = "STR5204"
	ClockBehind        Code = "STR5205"
	ClockDiffers       Code = "STR5206"
	ClocksDiffer       Code = "STR5207"
	ClusterHeld        Code = "STR5301"
	ClusterQuiet       Code = "STR5302"
	NodeDead           Code = "STR5303"
	NodeQuiet          Code = "STR5304"
	NodeHeld           Code = "STR5305"
)

// The cluster's API server.
const (
	APIServerSilent  Code = "STR6101"
	TypeMissing      Code = "STR6102"
	ReadForbidden    Code = "STR6103"
	LeaseRefused     Code = "STR6104"
	NobodyLeads      Code = "STR6105"
	LoanUnusable     Code = "STR6106"
	WriteRefused     Code = "STR6201"
	WriteUndone      Code = "STR6202"
	WriterCannotList Code = "STR6203"
	ServiceNameInUse Code = "STR6204"
	ImportLowered    Code = "STR6205"
)

// DNS.
const (
	UpstreamInvalid Code = "STR7101"
	UpstreamSilent  Code = "STR7102"
	DNSNotListening Code = "STR7103"
	ZoneNotServed   Code = "STR7201"
	CoreDNSOld      Code = "STR7202"
)

// The daemon itself.
const (
	MetricsNotServed    Code = "STR8101"
	OwnAddressesUnknown Code = "STR8102"
	SourceUnreadable    Code = "STR8103"
	GossipKeyUnreadable Code = "STR8104"
	EverybodyTrusted    Code = "STR8105"
	KeysNotMade         Code = "STR8106"
	HistoryStopped      Code = "STR8107"
)
