package reconnect

import (
	"net/http"
	"os"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// ReadIdleTimeout is the time without data after which a ping is sent to the server. The ping
	// is needed because a network failure does not close connections, and data that is sent over an
	// old connection is lost even when the network works again. The defaults of the libraries are
	// 30 seconds for the ping, and 15 seconds for the response.
	ReadIdleTimeout = 2 * time.Second
	// PingTimeout is the time in which the server must respond to a ping.
	PingTimeout = 4 * time.Second
)

// timeoutVariables are the environment variables with which an operator sets other timeouts.
var timeoutVariables = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"}

// SetPingTimeouts sets ReadIdleTimeout and PingTimeout for the connections of a configuration, so
// that a broken connection is closed soon. It must be called before other wrappers are added to the
// transport. Timeouts that an operator set with environment variables take precedence.
func SetPingTimeouts(config *rest.Config) {
	for _, name := range timeoutVariables {
		if os.Getenv(name) != "" {
			return
		}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return setTransportPingTimeouts(next, ReadIdleTimeout, PingTimeout)
	})
}

// setTransportPingTimeouts sets the timeouts on a transport that has no connections yet.
func setTransportPingTimeouts(next http.RoundTripper, idle, ping time.Duration) http.RoundTripper {
	below := next
	for {
		switch under := below.(type) {
		case *http.Transport:
			// http.DefaultTransport is not changed, because other code shares it.
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
