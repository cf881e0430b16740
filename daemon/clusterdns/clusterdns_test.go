package clusterdns

import (
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/coredns"
	"strait.io/strait/internal/problem"
)

// TestWatch goes through looks, one a letter: a for Answers, l for Lacks, "." for Unknown. The verdict
// after each is a letter of want.
func TestWatch(t *testing.T) {
	long := strings.Repeat(".", forget)
	letters := map[byte]Sight{'a': Answers, 'l': Lacks, '.': Unknown}
	for _, tc := range []struct{ name, looks, want string }{
		{"one look is not enough", "ll", ".."},
		{"three are", "lll", "..l"},
		{"a pod after the other gets another Corefile", "aaalalallaa", "..aaaaaaaaa"},
		{"in the end, all have it", "aaallal" + "lll", "..aaaaa" + "all"},
		{"back again, pod by pod", "lllalalaaa", "..lllllll" + "a"},
		{"no answer is no sign", "ll..l", "....l"},
		{"nor does it end what is known", "lll..l", "..llll"},
		{"but not for long", "lll" + long + "ll", "..l" + strings.Repeat("l", forget-1) + "." + ".."},
	} {
		var w Watch
		got, changes := "", ""
		last := byte('.')
		for i := range len(tc.looks) {
			changed := w.Note(letters[tc.looks[i]])
			now := map[Sight]byte{Unknown: '.', Answers: 'a', Lacks: 'l'}[w.verdict]
			if changed != (now != last) {
				changes += string(now)
			}
			got, last = got+string(now), now
		}
		if got != tc.want || changes != "" {
			t.Errorf("%s: %s, want %s (changes not reported: %q)", tc.name, got, tc.want, changes)
		}
	}
}

func TestProblems(t *testing.T) {
	lacks := Watch{verdict: Lacks}
	cart := Use{Service: clustermesh.ServiceName{Namespace: "shop", Name: "cart"}, Zone: "clusterset.local"}
	own := cart
	own.Listens = true
	setUp := coredns.Server{Service: "kube-system/kube-dns", Images: []string{"coredns:v1.12.2"}, Marked: true}
	untouched, old := setUp, setUp
	untouched.Marked, old.Images = false, []string{"coredns:v1.11.3"}
	const unset = "; if pods of this cluster need no such names, set dns.probe to off"
	for _, tc := range []struct {
		name    string
		w       Watch
		s       coredns.Server
		u       Use
		code    problem.Code
		warning bool
		text    string // part of it
	}{
		{name: "nothing is known", s: setUp, u: cart},
		{name: "it answers", w: Watch{verdict: Answers}, s: setUp, u: cart},
		{name: "no name to look up", w: lacks, s: setUp, u: Use{Zone: "clusterset.local"}},
		{name: "the Corefile was overwritten", w: lacks, s: setUp, u: cart, code: problem.ZoneNotServed,
			text: "Service kube-system/kube-dns: does not answer for clusterset.local: in this cluster, names such as cart.shop.svc.clusterset.local do not resolve; run strait dns setup --context CONTEXT"},
		{name: "it was never set up", w: lacks, s: untouched, u: cart, code: problem.ZoneNotServed, warning: true, text: "run strait dns setup --context CONTEXT" + unset},
		{name: "CoreDNS is too old", w: lacks, s: old, u: cart, code: problem.CoreDNSOld, text: "runs CoreDNS 1.11.3, which is too old"},
		{name: "strait answers itself, whatever the version", w: lacks, s: old, u: own, code: problem.ZoneNotServed, text: "forward clusterset.local to dns.listen there"},
		{name: "an address of the configuration", w: lacks, u: cart, code: problem.ZoneNotServed, warning: true, text: "the cluster's DNS: does not answer"},
	} {
		got := tc.w.Problems(tc.s, tc.u)
		if tc.code == "" {
			if len(got) != 0 {
				t.Errorf("%s: %v", tc.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Code != tc.code || got[0].Warning != tc.warning || !strings.Contains(got[0].String(), tc.text) {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}
