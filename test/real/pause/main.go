// Command pause holds the namespaces of a Pod: it waits until it is terminated. The
// test on real nodes also runs it as the application, because no registry is reachable.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
}
