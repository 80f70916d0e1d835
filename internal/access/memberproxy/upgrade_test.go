package memberproxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// switchingMember returns a member that switches protocols and passes the connection to talk.
func switchingMember(talk func(conn interface {
	net.Conn
	CloseWrite() error
}, read *bufio.Reader)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		talk(conn.(interface {
			net.Conn
			CloseWrite() error
		}), buffered.Reader)
	}
}

type halfCloser = interface {
	net.Conn
	CloseWrite() error
}

func TestHalfClosedStream(t *testing.T) {
	tests := map[string]struct {
		member func(conn halfCloser, read *bufio.Reader)
		client func(conn *net.TCPConn, read *bufio.Reader) (string, error)
		want   string
	}{
		"the client closes first and reads the response": {
			member: func(conn halfCloser, read *bufio.Reader) {
				input, _ := io.ReadAll(read)
				fmt.Fprintf(conn, "you said %s", input)
			},
			client: func(conn *net.TCPConn, read *bufio.Reader) (string, error) {
				fmt.Fprint(conn, "hello")
				if err := conn.CloseWrite(); err != nil {
					return "", err
				}
				output, err := io.ReadAll(read)
				return string(output), err
			},
			want: "you said hello",
		},
		"the member closes first and reads the response": {
			member: func(conn halfCloser, read *bufio.Reader) {
				fmt.Fprint(conn, "go on")
				_ = conn.CloseWrite()
				_, _ = io.ReadAll(read)
			},
			client: func(conn *net.TCPConn, read *bufio.Reader) (string, error) {
				output, err := io.ReadAll(read)
				fmt.Fprint(conn, "I do")
				return string(output), err
			},
			want: "go on",
		},
		"the member ignores the end of the client": {
			member: func(conn halfCloser, read *bufio.Reader) {
				_, _ = io.ReadAll(read)
				// Only the proxy can end the connection.
				_, _ = io.ReadAll(conn)
				for {
					if _, err := conn.Write(nil); err != nil {
						return
					}
					if _, err := conn.Read(make([]byte, 1)); err != nil {
						return
					}
				}
			},
			client: func(conn *net.TCPConn, read *bufio.Reader) (string, error) {
				if err := conn.CloseWrite(); err != nil {
					return "", err
				}
				output, err := io.ReadAll(read)
				return string(output), err
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixture(t, switchingMember(test.member))
			f.proxy.SetTimeouts(testTimeout)
			conn, read, resp := upgrade(t, f.front(t), "/proxy/exec") //nolint:bodyclose // the connection is closed by upgrade
			if resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("got %s", resp.Status)
			}
			got, err := test.client(conn.(*net.TCPConn), read)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestIdleStreamIsKept(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") != "" {
			echo(w, req)
			return
		}
		<-req.Context().Done()
	}))
	f.proxy.SetTimeouts(testTimeout)
	front := f.front(t)
	conn, reader, _ := upgrade(t, front, "/proxy/exec") //nolint:bodyclose // the connection is closed by upgrade
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	// While the stream is open, another request reaches its timeout.
	if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api/v1/pods", "")); got.code != http.StatusGatewayTimeout {
		t.Fatalf("a list of a member that sends no data: got %v", got)
	}
	fmt.Fprintln(conn, "still here")
	if line, err := reader.ReadString('\n'); err != nil || line != "still here\n" {
		t.Errorf("received %q, %v", line, err)
	}
}

func TestUpgradeTimeout(t *testing.T) {
	tests := map[string]struct {
		member http.HandlerFunc
		code   int
		want   string
	}{
		"no response": {func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }, http.StatusGatewayTimeout, `cluster "m1"`},
		"an error response without an end": {func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "not you")
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
		}, http.StatusForbidden, "not you"},
		"a closed connection": {func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close()
			}
		}, http.StatusBadGateway, `cluster "m1"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixture(t, test.member)
			f.proxy.SetTimeouts(testTimeout)
			_, _, resp := upgrade(t, f.front(t), "/proxy/exec") //nolint:bodyclose // the connection is closed by upgrade
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != test.code || !strings.Contains(string(body), test.want) {
				t.Errorf("got %s %q, want %d %q", resp.Status, body, test.code, test.want)
			}
		})
	}
}

func TestErrorBodyTimeoutOfUpgrade(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "no such Pod")
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}))
	// These timeouts are longer than the client's timeout.
	f.proxy.SetTimeouts(time.Hour)
	f.proxy.SetErrorBodyTimeout(testTimeout)
	_, _, resp := upgrade(t, f.front(t), "/proxy/exec") //nolint:bodyclose // the connection is closed by upgrade
	if _, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusNotFound || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %s and no end: %v", resp.Status, err)
	}
}

func TestUnauthorizedUpgrade(t *testing.T) {
	login := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "log in first", http.StatusUnauthorized) })
	f, _ := newFixture(t, login)
	front := f.front(t)
	for path, want := range map[string]int{
		"/proxy/api/v1/namespaces/a/services/shop/proxy/chat": http.StatusUnauthorized,
		"/proxy/api/v1/namespaces/a/pods/web/exec":            http.StatusServiceUnavailable,
	} {
		if _, _, resp := upgrade(t, front, path); resp.StatusCode != want { //nolint:bodyclose // the connection is closed by upgrade
			t.Errorf("%s: got %s, want %d", path, resp.Status, want)
		}
	}
}

func TestUpgradeWithBodyIsRejected(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(echo))
	f.proxy.SetTimeouts(testTimeout)
	tests := map[string]struct {
		rest string
		code int
	}{
		"a body of known length":          {"Content-Length: 5\r\n\r\n", http.StatusBadRequest},
		"a late body of unknown length":   {"Transfer-Encoding: chunked\r\n\r\n", http.StatusBadRequest},
		"a body of unknown length":        {"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", http.StatusBadRequest},
		"an empty body of unknown length": {"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", http.StatusSwitchingProtocols},
		"Content-Length 0":                {"Content-Length: 0\r\n\r\n", http.StatusSwitchingProtocols},
	}
	for name, test := range tests {
		conn, err := net.Dial("tcp", f.front(t).Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		// The proxy cannot know whether the bytes after the header are the body or the stream.
		fmt.Fprint(conn, "POST /proxy/exec HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"+test.rest)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != test.code {
			t.Errorf("%s: got %s, want %d", name, resp.Status, test.code)
		}
	}
}

func TestUpgradeHeaders(t *testing.T) {
	received := make(chan http.Header, 1)
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		received <- req.Header.Clone()
		echo(w, req)
	}))
	conn, err := net.Dial("tcp", f.front(t).Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(conn, "GET /proxy/exec HTTP/1.1\r\nHost: front\r\nConnection: keep-alive, Upgrade, X-Private\r\nUpgrade: websocket\r\n"+
		"X-Private: mine\r\nX_Remote_User: root\r\nTrue-Client-IP: 10.0.0.1\r\nOrigin: https://inside\r\nVia: 1.1 inside\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: inside\r\nForwarded: for=10.0.0.1\r\nCookie: session=x\r\nX-Stream-Protocol-Version: v4\r\nX-Stream-Protocol-Version: v5\r\nSec-WebSocket-Key: abc\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer stolen\r\nProxy-Authorization: Basic x\r\n\r\nearly")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("got %s", resp.Status)
	}
	header := <-received
	for name, want := range map[string]string{
		"X-Stream-Protocol-Version": "[v4 v5]", "Sec-Websocket-Key": "[abc]", "Sec-Websocket-Version": "[13]", "X_remote_user": "[]", "True-Client-Ip": "[]", "Origin": "[]", "Via": "[]", "Authorization": "[Bearer impersonator-token]",
		"X-Forwarded-For": "[]", "X-Forwarded-Host": "[]", "Forwarded": "[]", "Cookie": "[]", "X-Private": "[]", "Proxy-Authorization": "[]", "Connection": "[Upgrade]", "Upgrade": "[websocket]",
	} {
		if got := fmt.Sprint(header[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestEarlyDataOfStream sends data in the same packet as the request to switch protocols.
func TestEarlyDataOfStream(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(echo))
	conn, err := net.Dial("tcp", f.front(t).Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(conn, "GET /proxy/exec HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly\n")
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Fprint(conn, "late\n")
	for _, want := range []string{"/exec as alice\n", "early\n", "late\n"} {
		if got, err := reader.ReadString('\n'); got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// TestUnrequestedUpgrade uses a member that switches protocols although the client did not request
// this.
func TestUnrequestedUpgrade(t *testing.T) {
	f, _ := newFixtureHTTP1(t, http.HandlerFunc(echo))
	if got := sendRequest(t, newRequest(t, "GET", f.front(t).URL+"/proxy/exec", "")); got.code != http.StatusBadGateway {
		t.Errorf("got %v", got)
	}
}
