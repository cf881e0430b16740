package socklb

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"

	"strait.io/strait/datapath/socklb/layout"
)

// Owners returns the cookies of the sockets whose records can outlive them: those at home. The
// kernel's own sockets (MPTCP on old kernels, SMC, NFS) are closed without a call of sock_release.
func (l *LB) Owners() (cookies []uint64, err error) {
	l.reading.RLock()
	defer l.reading.RUnlock()
	if l.reader == nil {
		return nil, errClosed
	}
	return l.reader.Owners()
}

// etherLen is the length of an Ethernet header.
const etherLen = 14

// Forget frees the records of sockets that are gone. The caller must be sure that they are: a live
// socket would be shown its backend from now on.
func (l *LB) Forget(cookies []uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return errClosed
	}
	packet := make([]byte, etherLen+8)
	for _, c := range cookies {
		binary.NativeEndian.PutUint64(packet[etherLen:], c)
		ret, err := l.forget.Run(&ebpf.RunOptions{Data: packet})
		if err == nil && ret == 0 {
			err = fmt.Errorf("program %s did not see the cookie", layout.ProgForget)
		}
		if err != nil {
			return fmt.Errorf("forget the records of socket %d: %w", c, err)
		}
	}
	return nil
}
