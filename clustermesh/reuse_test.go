package clustermesh_test

import (
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
)

// Each field counts, the ones that are still to be added as well.
func TestEqual(t *testing.T) {
	eachFieldCounts(t, clustermesh.Endpoint.Equal)
	eachFieldCounts(t, clustermesh.Export.Equal)
	eachFieldCounts(t, clustermesh.Global.Equal)
	eachFieldCounts(t, clustermesh.PolicyResult.Equal)
	eachFieldCounts(t, clustermesh.ConfigObject.Equal)
	eachFieldCounts(t, func(a, b clustermesh.Node) bool { return a.Equal(&b) })
}

func eachFieldCounts[T any](t *testing.T, equal func(T, T) bool) {
	var x T
	if !equal(x, x) {
		t.Errorf("%T is not equal to itself", x)
	}
	for i := range reflect.TypeFor[T]().NumField() {
		o := x
		something(t, reflect.ValueOf(&o).Elem().Field(i))
		if equal(x, o) || equal(o, x) {
			t.Errorf("%T: %s does not count", x, reflect.TypeFor[T]().Field(i).Name)
		}
	}
}

// something makes a value of one that is zero.
func something(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Array:
		something(t, v.Index(0))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.ValueOf("x"))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[netip.Addr]() {
			v.Set(reflect.ValueOf(netip.MustParseAddr("10.0.0.1")))
			return
		}
		something(t, v.Field(0))
	default:
		t.Fatalf("no value for a field of kind %s", v.Kind())
	}
}

// What is reused says the same, and is the list that was there.
func TestReuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching("[ab]"), 0, 2)
		local := func(names []string) (l clustermesh.Local) {
			for _, n := range names {
				s := clustermesh.ServiceName{Namespace: "default", Name: n}
				l.Exports = append(l.Exports, clustermesh.Export{Service: s, Labels: map[string]string{"of": n}})
				l.ExportStatus = append(l.ExportStatus, clustermesh.ExportStatus{Service: s})
				l.Globals = append(l.Globals, clustermesh.Global{Service: s, IPs: []netip.Addr{netip.IPv4Unspecified()}})
				l.Endpoints = append(l.Endpoints, clustermesh.Endpoint{Service: s, Ports: []clustermesh.EndpointPort{{Name: n}}})
				l.Allocations = append(l.Allocations, clustermesh.Allocation{Service: s})
				l.Problems = append(l.Problems, clustermesh.Problem{Object: n})
			}
			return l
		}
		was, is := names.Draw(t, "before"), names.Draw(t, "now")
		before, now := local(was), local(is)
		got := now.Reuse(before)
		if !reflect.DeepEqual(got, now) {
			t.Fatalf("%+v became %+v", now, got)
		}
		if len(is) == 0 || !reflect.DeepEqual(was, is) {
			return
		}
		if &got.Exports[0] != &before.Exports[0] || &got.ExportStatus[0] != &before.ExportStatus[0] || &got.Globals[0] != &before.Globals[0] ||
			&got.Endpoints[0] != &before.Endpoints[0] || &got.Allocations[0] != &before.Allocations[0] {
			t.Fatal("not the lists that were there")
		}
	})
}
