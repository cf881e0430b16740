// Command forward carries TCP connections from one network namespace into another: it is handed a listener of the
// first as descriptor 3, and is started in the second, where it dials the address of its argument.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	fmt.Fprintf(os.Stderr, "forward: %v\n", serve(os.Args[1:]))
	os.Exit(1)
}

// serve returns only on error.
func serve(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: forward ADDRESS, with a listener as descriptor 3")
	}
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return fmt.Errorf("use descriptor 3: %w", err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go carry(client.(*net.TCPConn), args[0])
	}
}

// carry copies both ways until both ends are done. A server that is not there closes the client's connection.
func carry(client *net.TCPConn, address string) {
	defer client.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer conn.Close()
	server := conn.(*net.TCPConn)
	done := make(chan struct{})
	go func() {
		pour(server, client)
		close(done)
	}()
	pour(client, server)
	<-done
}

// pour copies until the end, and passes the end on.
func pour(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		// Broken, not ended: the other direction must not wait for it.
		_ = from.Close()
	}
	_ = to.CloseWrite() // it may be closed already
}
