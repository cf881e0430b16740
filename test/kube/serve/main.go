// Command serve replaces jeremyot/serve, the server in Karmada's example. It answers HTTP on port
// 8080 with a message, in which it fills in {{env "NAME"}} and {{addr}}.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"text/template"
)

func main() {
	message := flag.String("message", "hello", "template of the answer")
	flag.Parse()
	if err := serve(*message); err != nil {
		fmt.Fprintf(os.Stderr, "serve: %v\n", err)
		os.Exit(1)
	}
}

func serve(message string) error {
	addr := func(r *http.Request) string {
		host, _, _ := net.SplitHostPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		return host
	}
	t, err := template.New("message").Funcs(template.FuncMap{"env": os.Getenv, "addr": func() string { return "" }}).Parse(message)
	if err != nil {
		return fmt.Errorf("parse message: %w", err)
	}
	return http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, err := t.Clone()
		if err == nil {
			err = own.Funcs(template.FuncMap{"addr": func() string { return addr(r) }}).Execute(w, nil)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
}
