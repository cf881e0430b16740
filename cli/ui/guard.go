package ui

import (
	"crypto/subtle"
	"net"
	"net/http"
)

// tokenHeader has the token. A page of another site cannot set a header without asking first, which is
// not allowed here.
const tokenHeader = "X-Strait-Token"

// policy is what the page may load: its own files and answers. It can be in no frame, and sends no form.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers are those of every answer.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
}

// guarded answers requests that only read, and that come from the page itself or from its address bar.
//
// The port is open to every program and every site that a browser on this machine shows. So another
// site's page must not be able to read an answer under a name of its own that leads to 127.0.0.1 (Host),
// nor to have the browser ask in its place (Sec-Fetch-Site, which browsers set and pages cannot).
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			refuse(w, http.StatusMethodNotAllowed, "this page is read-only: use GET")
		case !loopback(r.Host):
			refuse(w, http.StatusForbidden, "this page answers at 127.0.0.1 and localhost alone")
		case site != "" && site != "same-origin" && site != "none":
			refuse(w, http.StatusForbidden, "this page answers no other site: open its address in a new tab")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// loopback reports whether a request was sent to this machine by a name that no other can have. The port
// can be another one, that of a tunnel.
func loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return name == "127.0.0.1" || name == "localhost"
}

// onlyWithToken answers who has the token. Other users of this machine can open the port too.
func (s *Server) onlyWithToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(s.token)) != 1 {
			refuse(w, http.StatusUnauthorized, "the token is missing, or is that of an earlier run: open the address that strait ui printed")
			return
		}
		next.ServeHTTP(w, r)
	})
}
