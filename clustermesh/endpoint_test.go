package clustermesh_test

import (
	"net/netip"
	"reflect"
	"testing"

	"strait.io/strait/clustermesh"
)

// Each field counts, the ones that are still to be added as well.
func TestEndpointEqual(t *testing.T) {
	var e clustermesh.Endpoint
	if !e.Equal(clustermesh.Endpoint{}) {
		t.Error("an endpoint is not equal to itself")
	}
	for i := range reflect.TypeOf(e).NumField() {
		o := e
		f := reflect.ValueOf(&o).Elem().Field(i)
		switch f.Interface().(type) {
		case netip.Addr:
			f.Set(reflect.ValueOf(netip.MustParseAddr("10.0.0.1")))
		case clustermesh.ServiceName:
			f.Set(reflect.ValueOf(clustermesh.ServiceName{Name: "x"}))
		case []clustermesh.EndpointPort:
			f.Set(reflect.ValueOf([]clustermesh.EndpointPort{{Port: 1}}))
		default:
			switch f.Kind() {
			case reflect.String:
				f.SetString("x")
			case reflect.Bool:
				f.SetBool(true)
			default:
				t.Fatalf("no value for a field of kind %s", f.Kind())
			}
		}
		if e.Equal(o) || o.Equal(e) {
			t.Errorf("%s does not count", reflect.TypeOf(e).Field(i).Name)
		}
	}
}
