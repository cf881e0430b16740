package cli

import (
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/l4"
)

func FuzzParseService(f *testing.F) {
	for _, s := range []string{"default/serve", "default/serve:80", "serve", "/", "a/b/c", ":", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		service, port, err := ParseService(arg)
		if err != nil {
			return
		}
		again := service
		if port != "" {
			again += ":" + port
		}
		if again != arg || strings.Count(service, "/") != 1 {
			t.Errorf("%q became %q and %q", arg, service, port)
		}
	})
}

func TestOnlyPortKeepsBothFamilies(t *testing.T) {
	at := func(ip string, port uint16) l4.Addr {
		return l4.Addr{IP: netip.MustParseAddr(ip), Port: port, Proto: l4.TCP}
	}
	s := api.Service{Name: "default/serve", Frontends: []api.Frontend{
		{Addr: at("241.7.3.9", 80), Port: "http"}, {Addr: at("241.7.3.9", 53), Port: "dns"}, {Addr: at("fd00::9", 80), Port: "http"},
	}}
	for _, port := range []string{"http", "80"} {
		if got, err := OnlyPort(s, port); err != nil || len(got.Frontends) != 2 {
			t.Errorf("%s: %d frontends, %v", port, len(got.Frontends), err)
		}
	}
	if len(s.Frontends) != 3 {
		t.Error("the service given was changed")
	}
}
