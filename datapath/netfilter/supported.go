package netfilter

import (
	"fmt"

	"github.com/google/nftables"
)

// Supported returns an error if the kernel has no nftables, or lets this process not use it.
func Supported() error {
	c, err := nftables.New()
	if err == nil {
		_, err = c.ListTables()
	}
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	return nil
}
