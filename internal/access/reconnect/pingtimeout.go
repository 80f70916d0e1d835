package reconnect

import (
	"net/http"
	"os"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// IdleLimit is how long a server may say nothing until it is asked whether it is
	// there. A network that is cut tells nobody, and what is sent into a connection from
	// before goes nowhere even when the network is whole again: the libraries would wait
	// for 30 seconds, and 15 more.
	IdleLimit = 2 * time.Second
	// PingLimit is how long it then has to answer.
	PingLimit = 4 * time.Second
)

// timeoutVariables are the variables by which an operator gives other limits.
var timeoutVariables = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"}

// Promptly lets the connections of a configuration end within IdleLimit and PingLimit
// of the moment in which nothing comes through them any more. It is called before
// anything else is put around the transport. An operator who has said it otherwise is
// heeded.
func Promptly(config *rest.Config) {
	for _, name := range timeoutVariables {
		if os.Getenv(name) != "" {
			return
		}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return setTransportPingTimeouts(next, IdleLimit, PingLimit) })
}

// setTransportPingTimeouts changes a transport that has no connections yet.
func setTransportPingTimeouts(next http.RoundTripper, idle, ping time.Duration) http.RoundTripper {
	below := next
	for {
		switch under := below.(type) {
		case *http.Transport:
			// That of everybody is not ours to change.
			if under != http.DefaultTransport && under.HTTP2 == nil {
				under.HTTP2 = &http.HTTP2Config{SendPingTimeout: idle, PingTimeout: ping}
			}
			return next
		case utilnet.RoundTripperWrapper:
			below = under.WrappedRoundTripper()
		default:
			return next
		}
	}
}
