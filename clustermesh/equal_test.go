package clustermesh_test

import (
	"net/netip"
	"reflect"
	"testing"

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
