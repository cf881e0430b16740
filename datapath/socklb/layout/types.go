package layout

import "github.com/cilium/ebpf"

// Keys and values of the maps; bpf/lib/types.h documents them.
type (
	ServiceKey      = socklbServiceKey
	Service         = socklbService
	Set             = socklbSet
	Backend         = socklbBackend
	FrontendCounter = socklbFrontendCounter
	BackendCounter  = socklbBackendCounter
	AffinityKey     = socklbAffinityKey
	Affinity        = socklbAffinity
	Flow            = socklbFlow
	Record          = socklbRecord
	MoreKey         = socklbMoreKey
	Flows           = socklbFlows
	Totals          = socklbTotals
	Address         = socklbAddress
	Range           = socklbRange
	AddressSieve    = socklbAddressSieve
	Row             = recordsRow
	OptOut          = socklbOptout
	OptOutSieve     = socklbOptoutSieve
)

// Maps has all maps, open.
type Maps = socklbMaps

// Names of maps and of their pins; bpf/lib/maps.h names the programs that write and read them.
const (
	MapServices         = socklbMapServices
	MapSets             = socklbMapSets
	MapBackends         = socklbMapBackends
	MapFrontendCounters = socklbMapFrontendCounters
	MapBackendCounters  = socklbMapBackendCounters
	MapAffinities       = socklbMapAffinities
	MapSockets          = socklbMapSockets
	MapSocketsMore      = socklbMapSocketsMore
	MapConnectedFlows   = socklbMapConnectedFlows
	MapUnconnectedFlows = socklbMapUnconnectedFlows
	MapTotals           = socklbMapTotals
	MapAddressSieve     = socklbMapAddressSieve
	MapAddresses        = socklbMapAddresses
	MapOptOuts          = socklbMapOptouts
	MapOptOutLevels     = socklbMapOptoutLevels
)

// Bits of OptOut.By: who wants a cgroup to be left alone. It is left alone as long as one of them
// does.
const (
	ByDaemon   = 1
	ByOperator = 2
)

// Names of the programs' constants, set when they are loaded.
const (
	VarSocketsMask  = socklbVarSocketsMask
	VarHasSetRetval = socklbVarHasSetRetval
	VarHasMPTCPSock = socklbVarHasMptcpSock
)

// ProgForget is the program that forgets the records of one cookie; user space runs it.
const ProgForget = socklbProgStraitForget

// Spec returns the compiled object: programs and maps, not loaded yet.
func Spec() (*ebpf.CollectionSpec, error) { return loadSocklb() }

// ListSpec returns the compiled object of the iterators, not loaded yet.
func ListSpec() (*ebpf.CollectionSpec, error) { return loadRecords() }

// FileListSpec returns the compiled object of the iterators over open files, not loaded yet. It declares the
// maps that they read. They print the same as those of ListSpec, whose place they take if the kernel
// refuses those.
func FileListSpec() (*ebpf.CollectionSpec, error) { return loadFiles() }

// FileLists has, for each of Lists, the iterator over open files that takes its place.
var FileLists = map[string]string{
	recordsProgListConnected:   filesProgFilesConnected,
	recordsProgListUnconnected: filesProgFilesUnconnected,
}

// Lists names the iterators over records in the storage of sockets, each with the map that it
// lists. A list is pinned beside the hooks' links; who opens and reads it gets Rows.
var Lists = map[string]string{
	recordsProgListConnected:   MapConnectedFlows,
	recordsProgListUnconnected: MapUnconnectedFlows,
}

// Hook is where a program is attached. Name is the name of its link's pin, Program that of the
// program.
type Hook struct {
	Name    string
	Program string
	Attach  ebpf.AttachType
	// Forward is true if the program chooses a backend. The others undo that, or clean up.
	Forward bool
}

// Hooks has all hooks, in the order in which programs are attached: reverse before forward, so that
// no socket is ever translated one way only.
var Hooks = []Hook{
	{"sock_release", socklbProgStraitRelease, ebpf.AttachCgroupInetSockRelease, false},
	{"getpeername4", socklbProgStraitGetpeer4, ebpf.AttachCgroupInet4GetPeername, false},
	{"getpeername6", socklbProgStraitGetpeer6, ebpf.AttachCgroupInet6GetPeername, false},
	{"recvmsg4", socklbProgStraitRecvmsg4, ebpf.AttachCGroupUDP4Recvmsg, false},
	{"recvmsg6", socklbProgStraitRecvmsg6, ebpf.AttachCGroupUDP6Recvmsg, false},
	{"sendmsg4", socklbProgStraitSendmsg4, ebpf.AttachCGroupUDP4Sendmsg, true},
	{"sendmsg6", socklbProgStraitSendmsg6, ebpf.AttachCGroupUDP6Sendmsg, true},
	{"connect4", socklbProgStraitConnect4, ebpf.AttachCGroupInet4Connect, true},
	{"connect6", socklbProgStraitConnect6, ebpf.AttachCGroupInet6Connect, true},
}
