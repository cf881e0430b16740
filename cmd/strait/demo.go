package main

import (
	"github.com/spf13/cobra"

	"strait.io/strait/demo"
)

// addDemo adds the one command that asks no daemon: it starts its own.
func addDemo(root *cobra.Command) { root.AddCommand(demo.Command()) }
