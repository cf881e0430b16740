package clients

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// program is a row of the table: a real program that calls a ClusterSetIP from a pod. The commands are shell
// scripts, which know $VIP and $PORT (the frontend), $POD (its backend, with the same port), $LOCAL (an address
// for a proxy in the pod), $SRC (testdata) and $DIR (an empty folder of this row).
type program struct {
	name   string
	needs  []string // programs and the Debian package of each
	protos []l4.Proto
	port   uint16
	// One of the two starts the server in the backend.
	server  func(*world, netip.AddrPort)
	serve   string
	proxy   string // runs in the client's pod, listens on $LOCAL and forwards to $VIP
	route   bool   // the client looks for its route to the frontend first, so it needs a default route
	client  string
	want    []string
	wantNot []string
}

const local = "127.0.0.1:8000"

var (
	tcp  = []l4.Proto{l4.TCP}
	udp  = []l4.Proto{l4.UDP}
	both = []l4.Proto{l4.TCP, l4.UDP}
)

var programs = []program{
	{
		name: "redis", needs: []string{"redis-server redis-server", "redis-cli redis-tools"}, protos: tcp, port: 6379,
		serve: `exec redis-server --bind $POD --port $PORT --protected-mode no --save '' --dir $DIR`,
		client: `redis-cli -h $VIP -p $PORT set fruit apple
			redis-cli -h $VIP -p $PORT get fruit
			redis-benchmark -h $VIP -p $PORT -n 2000 -c 20 -t incr --csv >/dev/null
			redis-cli -h $VIP -p $PORT get counter:__rand_int__`,
		want: []string{"OK\napple\n2000\n"},
	},
	{
		// -C connects again for each transaction.
		name: "PostgreSQL", needs: []string{"pg_createcluster postgresql", "psql postgresql-client"}, protos: tcp, port: 5432,
		serve: `cd $DIR; chown 65534 .; PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1):$PATH
			as="setpriv --reuid 65534 --regid 65534 --clear-groups"
			$as initdb -D data -U postgres -A trust --no-sync >&2
			echo host all all all trust >>data/pg_hba.conf
			exec $as postgres -D data -h $POD -p $PORT -k $DIR -c fsync=off -c shared_buffers=8MB`,
		client: `export PGHOST=$VIP PGPORT=$PORT PGUSER=postgres
			psql -Atc "select 'host ' || host(inet_server_addr())"
			echo 'select 1;' >$DIR/one.sql
			pgbench -C -n -c 4 -t 25 -f $DIR/one.sql`,
		want: []string{"host 192.0.2.2\n", "actually processed: 100/100", "failed transactions: 0 "},
	},
	{
		name: "nginx as a proxy", needs: []string{"nginx nginx", "curl curl"}, protos: tcp, port: 8080,
		server: (*world).serveHTTP,
		proxy: `cat >$DIR/nginx.conf <<-END
				daemon off; master_process off; pid $DIR/pid; error_log stderr;
				events {}
				http {
				  access_log off;
				  server { listen $LOCAL; location / { proxy_pass http://$VIP:$PORT; add_header Upstream \$upstream_addr; } }
				}
			END
			exec nginx -e stderr -c $DIR/nginx.conf`,
		client: `for i in 1 2 3 4 5; do curl -qsSi http://$LOCAL/; done; curl -qsS http://$LOCAL/big | wc -c`,
		want:   []string{"Upstream: 10.96.0.1:8080", "you reached 192.0.2.2:8080", "33554432"},
	},
	{
		name: "haproxy as a proxy", needs: []string{"haproxy haproxy", "curl curl"}, protos: tcp, port: 8080,
		server: (*world).serveHTTP,
		proxy: `cat >$DIR/haproxy.cfg <<-END
				defaults
				  mode http
				  timeout connect 5s
				  timeout client 5s
				  timeout server 5s
				listen web
				  bind $LOCAL
				  server vip $VIP:$PORT check inter 200ms
			END
			exec haproxy -db -f $DIR/haproxy.cfg`,
		client: `for i in 1 2 3 4 5; do curl -qsSi http://$LOCAL/; done; curl -qsS http://$LOCAL/big | wc -c`,
		want:   []string{"200 OK", "you reached 192.0.2.2:8080", "33554432"}, wantNot: []string{"503"},
	},
	{
		name: "unbound as a forwarder", needs: []string{"unbound unbound", "dig bind9-dnsutils"}, protos: both, port: 53,
		server: (*world).serveDNS,
		proxy: `cat >$DIR/unbound.conf <<-END
				server:
				  interface: ${LOCAL%:*}@${LOCAL#*:}
				  chroot: ""
				  username: ""
				  directory: "$DIR"
				  pidfile: ""
				  use-syslog: no
				  do-daemonize: no
				  module-config: "iterator"
				forward-zone:
				  name: "."
				  forward-addr: $VIP@$PORT
			END
			exec unbound -d -c $DIR/unbound.conf`,
		client: askLocal,
		want:   []string{"203.0.113.0", "ANSWER: 200,"},
	},
	{
		name: "dnsmasq as a forwarder", needs: []string{"dnsmasq dnsmasq-base", "dig bind9-dnsutils"}, protos: both, port: 53,
		server: (*world).serveDNS,
		proxy: `exec dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --user=root --pid-file= \
			--port=${LOCAL#*:} --listen-address=${LOCAL%:*} --bind-interfaces --server=$VIP#$PORT --log-facility=-`,
		client: askLocal,
		want:   []string{"203.0.113.0", "ANSWER: 200,"},
	},
	{
		name: "rsync", needs: []string{"rsync rsync"}, protos: tcp, port: 873,
		serve: `mkdir $DIR/files; seq 200000 >$DIR/files/numbers; ln -s numbers $DIR/files/link
			printf 'use chroot = no\nuid = 0\ngid = 0\n[files]\npath = %s/files\n' $DIR >$DIR/rsyncd.conf
			exec rsync --daemon --no-detach --config=$DIR/rsyncd.conf --address=$POD --port=$PORT`,
		client: `rsync -a rsync://$VIP:$PORT/files/ $DIR/copy/; diff -r $DIR/files $DIR/copy && echo same`,
		want:   []string{"same"},
	},
	{
		name: "chrony", needs: []string{"chronyd chrony"}, protos: udp, port: 123,
		serve: `printf 'local stratum 8\nallow all\nport %s\nbindaddress %s\ncmdport 0\nbindcmdaddress /\npidfile %s/server\n' \
				$PORT $POD $DIR >$DIR/server.conf
			exec chronyd -x -d -u root -f $DIR/server.conf`,
		client: `printf 'server %s port %s iburst\ncmdport 0\nbindcmdaddress /\npidfile %s/client\n' $VIP $PORT $DIR >$DIR/client.conf
			chronyd -Q -t 20 -u root -f $DIR/client.conf`,
		want: []string{"System clock wrong by"}, wantNot: []string{"No suitable source"},
	},
	{
		name: "syslog", needs: []string{"logger bsdutils"}, protos: both, port: 514,
		server: (*world).serveLog,
		client: `logger -n $VIP -P $PORT -d over UDP; logger -n $VIP -P $PORT -T over TCP
			until grep -q 'over UDP' $DIR/log && grep -q 'over TCP' $DIR/log; do sleep 0.05; done; echo logged`,
		want: []string{"logged"},
	},
	{
		name: "HTTP/2", needs: []string{"curl curl"}, protos: tcp, port: 8080,
		server: (*world).serveHTTP,
		client: `curl -qsS --http2-prior-knowledge -w ' HTTP/%{http_version}, peer %{remote_ip}' http://$VIP:$PORT/`,
		want:   []string{"you reached 192.0.2.2:8080", "HTTP/2, peer 10.96.0.1"},
	},
	{
		name: "HTTP/3", needs: []string{"gtlsserver ngtcp2-server", "gtlsclient ngtcp2-client", "openssl openssl"}, protos: udp, port: 4433,
		serve: `cd $DIR; mkdir files; seq 200000 >files/numbers
			openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=web -keyout key -out cert 2>/dev/null
			exec gtlsserver -q -d $DIR/files $POD $PORT key cert`,
		route: true, // the client asks the kernel which way the frontend is
		client: `mkdir $DIR/got; gtlsclient -q --exit-on-all-streams-close --download=$DIR/got $VIP $PORT https://$VIP:$PORT/numbers
			cmp $DIR/files/numbers $DIR/got/numbers && echo same`,
		want: []string{"same"},
	},
	{
		name: "gRPC", needs: []string{grpcPackage}, protos: tcp, port: 5051,
		serve:  `exec /usr/bin/python3 $SRC/rpc.py serve $POD:$PORT`,
		client: `/usr/bin/python3 $SRC/rpc.py call $VIP:$PORT`,
		want:   []string{"unary: hello\n", "stream: 100 of 100, in order\n", "peer: ipv4:192.0.2.1"},
	},
	{
		name: "WebSocket", needs: []string{websocketPackage}, protos: tcp, port: 8765,
		serve:  `exec /usr/bin/python3 $SRC/websocket.py serve $POD $PORT`,
		client: `/usr/bin/python3 $SRC/websocket.py call $VIP $PORT`,
		want:   []string{"100 of 100, in order, from 10.96.0.1\n"},
	},
	{
		// In active mode, the server connects to the client.
		name: "FTP", needs: []string{"curl curl", ftpPackage}, protos: tcp, port: 2121,
		serve: `mkdir $DIR/files; echo from the server >$DIR/files/text
			exec /usr/bin/python3 -m pyftpdlib -i $POD -p $PORT -d $DIR/files`,
		route: true, // as in a pod, where a port that no frontend has does not fail at once
		client: `curl -qsS --ftp-port - ftp://$VIP:$PORT/text
			curl -qsS --disable-epsv --no-ftp-skip-pasv-ip ftp://$VIP:$PORT/text
			curl -qsS --connect-timeout 3 --ftp-skip-pasv-ip ftp://$VIP:$PORT/text || echo passive with the address of the control connection: $?`,
		want: []string{"from the server\nfrom the server\n", "control connection: "},
	},
}

// askLocal asks for an answer that fits in a datagram, and for one that the forwarder must ask for again by TCP.
const askLocal = `at="@${LOCAL%:*} -p ${LOCAL#*:} +tries=1 +timeout=5"
	dig $at ` + name + ` A; dig $at +tcp ` + bigName + ` A`

func TestPrograms(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, n := range p.needs {
				needs(t, n)
			}
			p.run(newWorld(t))
		})
	}
}

func (p program) run(w *world) {
	backend := netip.AddrPortFrom(pod4, p.port)
	w.dir = w.folder()
	w.env = []string{"VIP=" + front4.String(), "POD=" + pod4.String(), fmt.Sprint("PORT=", p.port), "LOCAL=" + local,
		"DIR=" + w.dir, "SRC=" + w.testdata()}
	if p.server != nil {
		p.server(w, backend)
	} else {
		w.script(false, p.serve)
	}
	var fronts []datapath.Frontend
	for _, proto := range p.protos {
		w.bound(w.servers, proto, p.port)
		fronts = append(fronts, frontend(front4, p.port, proto, p.port, pod4))
	}
	w.balance(fronts...)
	if p.proxy != "" {
		w.script(true, p.proxy)
		w.bound(w.clients, l4.TCP, netip.MustParseAddrPort(local).Port())
	}
	if p.route {
		must(w.t, w.clients.Do(func() error { return netlink.RouteAdd(&netlink.Route{Gw: pod4.AsSlice()}) }))
	}
	printed := w.prints(p.want, "/bin/sh", "-euc", p.client)
	for _, text := range p.wantNot {
		if strings.Contains(printed, text) {
			w.t.Errorf("%q in:\n%s", text, printed)
		}
	}
}

// folder is one that programs that gave up root can read too: t.TempDir's is for root only.
func (w *world) folder() string {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "strait-clients-")
	must(w.t, err)
	w.t.Cleanup(func() { must(w.t, os.RemoveAll(dir)) })
	must(w.t, os.Chmod(dir, 0o755))
	return dir
}
