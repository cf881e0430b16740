package main

import (
	"github.com/spf13/cobra"

	"strait.io/strait/demo"
)

// demoCommand is the demo, which starts daemons of its own.
func demoCommand() *cobra.Command { return demo.Command() }
