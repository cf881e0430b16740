package api

// ViewName is the name of the Service, and of the Secret with the token, by which a client that has no access to
// a daemon's socket asks one: through the API server.
const ViewName = "strait-view"

// ViewProxy is the name of the Service in services/proxy: its scheme, itself and its port.
const ViewProxy = "https:" + ViewName + ":https"

// ViewTokenKey is the key of the token in the Secret, and ViewTokenHeader the header in which a client sends
// it: the API server keeps the header Authorization for itself.
const (
	ViewTokenKey    = "token"
	ViewTokenHeader = "X-Strait-Token"
)
