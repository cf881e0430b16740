package main

import (
	"github.com/spf13/cobra"

	"strait.io/strait/demo"
)

// addDemo adds the demo command, which starts daemons of its own.
func addDemo(root *cobra.Command) { root.AddCommand(demo.Command()) }
