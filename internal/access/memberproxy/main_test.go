package memberproxy_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(cleanupRunner{m}) }

// cleanupRunner closes the tests' idle connections, because they are not leaks of the proxy.
type cleanupRunner struct{ *testing.M }

func (c cleanupRunner) Run() int {
	defer http.DefaultClient.CloseIdleConnections()
	return c.M.Run()
}
