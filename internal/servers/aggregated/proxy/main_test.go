package proxy_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(quiet{m}) }

// quiet ends the tests' own idle connections, which are no leak of the proxy.
type quiet struct{ *testing.M }

func (q quiet) Run() int {
	defer http.DefaultClient.CloseIdleConnections()
	return q.M.Run()
}
