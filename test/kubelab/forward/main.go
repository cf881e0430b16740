// Command forward forwards TCP connections from one network namespace into another. It is started
// in the second, with a listener of the first as descriptor 3. For each connection it dials the
// address that is its argument.
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

// serve forwards connections. It returns only on error.
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

// carry copies in both directions until both ends are done. If the server cannot be reached, it
// closes the client's connection.
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

// pour copies until from is at its end, and then closes to for writing.
func pour(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		// The connection is broken, so the other direction must not wait for it.
		_ = from.Close()
	}
	_ = to.CloseWrite() // fails if it is already closed
}
