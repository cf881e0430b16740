package ovn

import "testing"

func TestBypasses(t *testing.T) {
	for annotation, want := range map[string]bool{
		// As OpenShift 4.19 writes it, shortened.
		`{"default":{"mode":"shared","bridge-id":"br-ex","interface-id":"br-ex_worker-0","mac-address":"52:54:00:ab:67:26","ip-addresses":["192.168.122.159/24"],"next-hops":["192.168.122.1"],"node-port-enable":"true","vlan-id":"0"}}`: true,
		`{"default":{"mode":"local","bridge-id":"br-ex"}}`: false,
		`{"default":{"mode":""}}`:                          false, // no gateway
		`{"default":{}}`:                                   false,
		`{"blue":{"mode":"shared"}}`:                       false,
		`{"default":[]}`:                                   false,
		`shared`:                                           false,
		"":                                                 false,
	} {
		if got := Bypasses(annotation); got != want {
			t.Errorf("%s: %v, want %v", annotation, got, want)
		}
	}
}

func FuzzBypasses(f *testing.F) {
	f.Add(`{"default":{"mode":"shared"}}`)
	f.Fuzz(func(t *testing.T, annotation string) {
		if Bypasses(annotation) && len(annotation) < len(`{"default":{"mode":"shared"}}`) {
			t.Errorf("%q is too short to say so", annotation)
		}
	})
}
