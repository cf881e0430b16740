// Package web is the page of strait ui: its TypeScript (src), Preact, which it uses (preact), and what build
// makes of both (dist), which is committed so that building strait needs no Node.js.
//
// Output is the files of the page. It must not know who serves them, nor what the views are made from.
package web

import (
	"embed"
	"io/fs"
)

//go:generate go run ./build

//go:embed dist
var dist embed.FS

// Files are index.html and what it loads.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil { // the compiler has checked the name
		panic(err)
	}
	return files
}
