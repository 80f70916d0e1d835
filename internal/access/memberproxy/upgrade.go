package memberproxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// isUpgrade reports whether the header of a request or response switches protocols.
func isUpgrade(header http.Header) bool {
	return header.Get("Upgrade") != "" && httpguts.HeaderValuesContainsToken(header["Connection"], "upgrade")
}

// hasNoBody reports whether a request has no body. A proxy may send an empty body of unknown length,
// whose end must arrive within limit.
func hasNoBody(w http.ResponseWriter, req *http.Request, limit time.Duration) bool {
	if req.ContentLength >= 0 {
		return req.ContentLength == 0
	}
	connection := http.NewResponseController(w)
	if connection.SetReadDeadline(time.Now().Add(limit)) != nil {
		return false
	}
	n, err := req.Body.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF) && connection.SetReadDeadline(time.Time{}) == nil
}

// upgradeWriter is the ResponseWriter of a request to switch protocols. It lets one direction of the
// stream continue after the other one has ended, as long as data is sent.
type upgradeWriter struct {
	http.ResponseWriter
	// linger is the maximum time without data after one direction has ended. After that, end is called.
	linger time.Duration
	end    func()
}

// Unwrap returns the original writer for http.ResponseController.
func (u upgradeWriter) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// Hijack implements http.Hijacker.
func (u upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		// For any error except http.ErrNotSupported, ReverseProxy closes the connection to the member.
		return nil, nil, fmt.Errorf("hijacking the connection of the client: %v", err) //nolint:errorlint // see above
	}
	// Read from the server's buffer only the data that it already contains, and then from the
	// connection, because reading further from the buffer would also end the request.
	early := io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered()))
	return &stream{Conn: conn, reader: io.MultiReader(early, conn), writer: u}, buffered, nil
}

// stream is the client's connection after the protocols were switched.
type stream struct {
	net.Conn
	reader io.Reader
	writer upgradeWriter
	// halfClosedDog is set when one direction has ended.
	halfClosedDog atomic.Pointer[watchdog]
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.reader.Read(p)
	if n > 0 {
		s.halfClosedDog.Load().reset()
	}
	if err != nil {
		s.closeHalf()
	}
	return n, err
}

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if n > 0 {
		s.halfClosedDog.Load().reset()
	}
	return n, err
}

// CloseWrite tells the client that the member sends no more data.
func (s *stream) CloseWrite() error {
	s.closeHalf()
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Close closes the connection in both directions.
func (s *stream) Close() error {
	s.closeHalf()
	s.halfClosedDog.Load().stop()
	return s.Conn.Close()
}

// closeHalf starts the time limit for a half-closed stream.
func (s *stream) closeHalf() {
	dog := newWatchdog(s.writer.linger, func() {
		s.writer.end()
		_ = s.Conn.Close()
	})
	if !s.halfClosedDog.CompareAndSwap(nil, dog) {
		dog.stop()
	}
}
