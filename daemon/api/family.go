package api

// Family names the frontend's IP family.
func (f Frontend) Family() string {
	if f.Addr.IP.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// SameFamily reports whether an endpoint is of the frontend's IP family. An endpoint of the other
// one is listed, but can never be behind the frontend.
func (f Frontend) SameFamily(e Endpoint) bool { return e.Addr.Addr().Unmap().Is4() == f.Addr.IP.Is4() }
