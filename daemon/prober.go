package daemon

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/health"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath/ping"
	"strait.io/strait/datapath/tunnelhealth"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/notify"
)

const (
	// probeBeat is how often the prober looks whom to probe, and what is unanswered.
	probeBeat = 100 * time.Millisecond
	// reopenEvery is the pause before a socket that did not work is opened again.
	reopenEvery = 2 * time.Second
	// WireGuard is asked about its peers each readEvery, and each readSoon while some owe an answer.
	readEvery = 10 * time.Second
	readSoon  = time.Second
)

// prober probes the tunnels, and knows what they carry.
type prober struct {
	kernel *kernel

	mu      sync.Mutex
	watch   *tunnelhealth.Watch
	targets map[netip.Addr]health.Target // by the address inside the tunnel
	origins map[clustermesh.Origin]netip.Addr
	from    netip.Addr // this node's own address there; can be invalid
	made    int        // that of tunnels
	err     error      // why the tunnels cannot be probed

	// The loop of run owns these.
	socket     *ping.Socket
	socketFrom netip.Addr
	socketMade int
	tried      time.Time
	receivers  sync.WaitGroup
}

func newProber(k *kernel) *prober { return &prober{kernel: k, watch: tunnelhealth.New()} }

// aim sets the peers to probe. It is called in each turn.
func (p *prober) aim(r plan.Result, s clustermesh.State, sizes sizes, made int) {
	targets := health.Targets(r, s, sizes.of)
	peers, origins := make(map[netip.Addr]tunnelhealth.Peer, len(targets)), make(map[clustermesh.Origin]netip.Addr, len(targets))
	for a, t := range targets {
		peers[a], origins[t.Origin] = t.Peer, a
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets, p.origins, p.from, p.made = targets, origins, r.Desired.Sources.Node, made
	p.watch.Track(peers, time.Now())
}

// run probes until ctx is done, and pokes changed when a tunnel carries what it did not, or the other way
// round.
func (p *prober) run(ctx context.Context, changed notify.Signal) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.probe(ctx, changed) })
	g.Go(func() error { return p.ask(ctx) })
	return g.Wait()
}

func (p *prober) probe(ctx context.Context, changed notify.Signal) error {
	tick := time.NewTicker(probeBeat)
	defer tick.Stop()
	defer p.receivers.Wait()
	defer p.close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if p.open(ctx) {
			p.send()
		}
		p.mu.Lock()
		news := p.watch.Judge(time.Now())
		p.mu.Unlock()
		if news {
			changed.Poke()
		}
	}
}

// open makes sure that there is a socket with the right address on the device that is there now.
func (p *prober) open(ctx context.Context) bool {
	p.mu.Lock()
	from, made, want := p.from, p.made, len(p.targets) > 0
	p.mu.Unlock()
	if p.socket != nil && (!want || p.socketFrom != from || p.socketMade != made) {
		p.close()
	}
	if !want || !from.IsValid() || p.socket != nil {
		return p.socket != nil
	}
	if time.Since(p.tried) < reopenEvery {
		return false
	}
	p.tried = time.Now()
	s, err := ping.Open(ctx, p.kernel.config.Mesh.Device, from)
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	if err != nil {
		return false
	}
	p.socket, p.socketFrom, p.socketMade = s, from, made
	p.receivers.Go(func() { p.receive(s) })
	return true
}

func (p *prober) close() {
	if p.socket != nil {
		p.socket.Close()
		p.socket = nil
	}
}

// receive notes answers until the socket is closed.
func (p *prober) receive(s *ping.Socket) {
	for {
		from, id, err := s.Receive()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.watch.Answered(from, id, time.Now())
		p.mu.Unlock()
	}
}

// send sends the probes that are due. A failure to send is no sign about the peer: there is no route
// yet, or the device was made again.
func (p *prober) send() {
	p.mu.Lock()
	due := p.watch.Due(time.Now())
	p.mu.Unlock()
	for _, d := range due {
		id := newID()
		p.mu.Lock()
		p.watch.Sent(d, id, time.Now()) // before the answer can come
		p.mu.Unlock()
		if err := p.socket.Send(d.To, id, d.Size); err != nil {
			p.mu.Lock()
			p.watch.Unsent(d.To, id)
			p.mu.Unlock()
			if broken(err) {
				p.close()
				return
			}
		}
	}
}

// newID returns a random id, which others cannot guess.
func newID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:])
}

// ask asks WireGuard about its peers until ctx is done.
func (p *prober) ask(ctx context.Context) error {
	tick := time.NewTicker(readSoon)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		p.mu.Lock()
		now, some := p.watch.Waits(time.Now()), len(p.targets) > 0
		p.mu.Unlock()
		if some && (now || time.Since(last) >= readEvery) {
			last = time.Now()
			p.read()
		}
	}
}

func (p *prober) read() {
	_, device := p.kernel.opened()
	if device == nil {
		return
	}
	peers, err := device.Peers()
	if err != nil {
		peers = nil // then they are unknown, which askTunnel and the turns look after
	}
	byKey := make(map[key.Public]tunnelhealth.Device, len(peers))
	for _, s := range peers {
		byKey[s.Key] = tunnelhealth.Device{Handshake: s.Handshake, Received: s.Received}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	devices := make(map[netip.Addr]tunnelhealth.Device, len(p.targets))
	for a, t := range p.targets {
		if d, is := byKey[t.Key]; is {
			devices[a] = d
		}
	}
	p.watch.Read(devices, time.Now())
}

// at returns this node's address in the tunnel and that of another node, and how large a packet to it can
// be; false if the tunnel to it is not probed.
func (p *prober) at(o clustermesh.Origin) (from, to netip.Addr, size int, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to, is = p.origins[o]
	return p.from, to, p.targets[to].Peer.Size, is && p.from.IsValid()
}

// verdicts returns what is known of the tunnels, and why they cannot be probed, if so.
func (p *prober) verdicts() (map[clustermesh.Origin]tunnelhealth.Verdict, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	byAddr := p.watch.Verdicts()
	out := make(map[clustermesh.Origin]tunnelhealth.Verdict, len(p.origins))
	for o, a := range p.origins {
		out[o] = byAddr[a]
	}
	return out, p.err
}

// broken reports whether a socket is bound to a device that is gone.
func broken(err error) bool {
	return errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EADDRNOTAVAIL)
}
