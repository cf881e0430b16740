package sockdestroy

import (
	"errors"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// Probe checks which ways to destroy a socket the running kernel has. It destroys no socket.
func Probe() []datapath.Feature {
	return []datapath.Feature{
		{
			Name: "socket iterators that destroy", OK: haveIterator() == nil, Since: "6.5",
			Without: "stale sockets are found and destroyed by sock_diag",
		},
		{
			Name: "sock_diag that destroys", OK: haveDiag() == nil, Since: "4.9",
			Without: "only socket iterators destroy stale sockets; if these are missing too, " +
				"connected UDP stays with a withdrawn backend until its client gives up",
		},
	}
}

func haveIterator() error {
	it, err := newIterator()
	if err != nil {
		return err
	}
	return it.close()
}

// haveDiag tries to destroy a socket that does not exist: no socket has the cookie 0.
func haveDiag() error {
	c, err := dialDiag()
	if err != nil {
		return err
	}
	defer c.close()
	for _, proto := range []l4.Proto{l4.UDP, l4.TCP} {
		req := diagRequest{family: unix.AF_INET, proto: proto}
		// The list shows that the protocol's module is loaded: without it, the answer would be
		// ENOENT too.
		if err := c.list(req, func(diagSocket) {}); err != nil {
			return err
		}
		err := c.destroy(req)
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESTALE) {
			return errors.Join(explainDiag(err), unix.EOPNOTSUPP)
		}
	}
	return nil
}
