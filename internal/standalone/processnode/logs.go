package processnode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// maxLogFile is the size at which a log begins anew; the part before is kept.
	maxLogFile = 4 << 20
	// maxLogLine is how long a piece of a line may be; longer lines are kept in pieces.
	maxLogLine = 16 << 10
	logTime    = "2006-01-02T15:04:05.000000000Z07:00"
	older      = ".1"
)

// The marks of a line, as container runtimes write them.
const (
	wholeLine = "F"
	linePiece = "P"
)

// logFile is what one life of a container wrote. It holds twice maxLogFile at most.
type logFile struct {
	path string
	now  func() time.Time

	mu    sync.Mutex
	file  *os.File
	size  int
	turns int
	// news is closed when something was written, and replaced.
	news   chan struct{}
	closed bool
}

func newLog(path string, now func() time.Time) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of a container: %w", err)
	}
	return &logFile{path: path, now: now, file: file, news: make(chan struct{})}, nil
}

// stream is a writer for one of the program's outputs.
func (l *logFile) stream(name string) *logStream { return &logStream{log: l, name: name} }

func (l *logFile) line(stream, mark string, text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return os.ErrClosed
	}
	if l.size >= maxLogFile {
		if err := l.turn(); err != nil {
			return err
		}
	}
	n, err := fmt.Fprintf(l.file, "%s %s %s %s\n", l.now().UTC().Format(logTime), stream, mark, text)
	l.size += n
	close(l.news)
	l.news = make(chan struct{})
	if err != nil {
		return fmt.Errorf("writing the log of a container: %w", err)
	}
	return nil
}

// turn begins a new file and keeps the last one.
func (l *logFile) turn() error {
	if err := os.Rename(l.path, l.path+older); err != nil {
		return fmt.Errorf("keeping the log of a container: %w", err)
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of a container: %w", err)
	}
	_ = l.file.Close()
	l.file, l.size = file, 0
	l.turns++
	return nil
}

// close ends the log; whoever follows it comes to its end.
func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	_ = l.file.Close()
	close(l.news)
}

// state tells how often the log began anew, what to wait for, and whether it ended.
func (l *logFile) state() (turns int, news <-chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turns, l.news, l.closed
}

// logStream cuts what a program writes into lines.
type logStream struct {
	log  *logFile
	name string
	rest []byte
}

// Write implements io.Writer.
func (s *logStream) Write(text []byte) (int, error) {
	written := len(text)
	for {
		line, after, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			break
		}
		if err := s.put(wholeLine, line); err != nil {
			return 0, err
		}
		text = after
	}
	if s.rest = append(s.rest, text...); len(s.rest) < maxLogLine {
		return written, nil
	}
	return written, s.put(linePiece, nil)
}

func (s *logStream) put(mark string, text []byte) error {
	line := append(s.rest, text...) //nolint:gocritic // it is written before the rest is used again
	s.rest = line[:0]
	return s.log.line(s.name, mark, line)
}

// flush writes a last line that has no end.
func (s *logStream) flush() {
	if len(s.rest) > 0 {
		_ = s.put(linePiece, nil)
	}
}

// logQuery is what `kubectl logs` asks for.
type logQuery struct {
	follow, timestamps bool
	since              time.Time
	// tail is how many lines at most, negative for all.
	tail int
	// limit is how many bytes at most, 0 for all.
	limit int64
}

// readLog copies a log to out. log is the one that is still written, nil if none is.
func readLog(ctx context.Context, path string, log *logFile, query logQuery, out io.Writer) error {
	printed := &logPrinter{query: query, out: out}
	turns := 0
	if log != nil {
		turns, _, _ = log.state()
	}
	var old []string
	for _, name := range []string{path + older, path} {
		lines, err := printed.wanted(name)
		if err != nil {
			return err
		}
		old = append(old, lines...)
	}
	if query.tail >= 0 && len(old) > query.tail {
		old = old[len(old)-query.tail:]
	}
	for _, line := range old {
		if err := printed.print(line); err != nil {
			return err
		}
	}
	if !query.follow || log == nil {
		return nil
	}
	return printed.follow(ctx, log, turns)
}

// errEnough tells that the limit of bytes is reached.
var errEnough = errors.New("the limit is reached")

type logPrinter struct {
	query   logQuery
	out     io.Writer
	printed int64
	// at is how far the present file was read.
	at int64
}

// wanted are the lines of a file that are asked for; it remembers how far it read.
func (p *logPrinter) wanted(path string) ([]string, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the log of a container: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines, read, err := completeLines(file)
	p.at = read
	return lines, err
}

// completeLines are the lines up to the last end of a line, and where that is.
func completeLines(from io.Reader) (lines []string, read int64, err error) {
	reader := bufio.NewReader(from)
	for {
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return lines, read, nil
		}
		if err != nil {
			return lines, read, fmt.Errorf("reading the log of a container: %w", err)
		}
		read += int64(len(line))
		lines = append(lines, line)
	}
}

// follow prints what is written until the log ends or nobody listens.
func (p *logPrinter) follow(ctx context.Context, log *logFile, turns int) error {
	for {
		now, news, closed := log.state()
		if now != turns {
			// What was written between the last look and the turn is in the former file.
			if err := p.printFrom(log.path + older); err != nil {
				return err
			}
			p.at, turns = 0, now
		}
		if err := p.printFrom(log.path); err != nil || closed {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		}
	}
}

func (p *logPrinter) printFrom(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the log of a container: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(p.at, io.SeekStart); err != nil {
		return fmt.Errorf("reading the log of a container: %w", err)
	}
	lines, read, err := completeLines(file)
	p.at += read
	for _, line := range lines {
		if err := p.print(line); err != nil {
			return err
		}
	}
	return err
}

// print writes a line as it was asked for. A line that is none is left out.
func (p *logPrinter) print(line string) error {
	stamp, rest, _ := cutField(line)
	_, rest, _ = cutField(rest)
	mark, text, ok := cutField(rest)
	if !ok {
		return nil
	}
	if at, err := time.Parse(logTime, stamp); err != nil || at.Before(p.query.since) {
		return nil //nolint:nilerr // what is no line of a log was not written by the program
	}
	if mark == linePiece {
		text = text[:len(text)-1]
	}
	if p.query.timestamps {
		text = stamp + " " + text
	}
	if limit := p.query.limit; limit > 0 && p.printed+int64(len(text)) > limit {
		_, err := io.WriteString(p.out, text[:limit-p.printed])
		return errors.Join(errEnough, err)
	}
	p.printed += int64(len(text))
	if _, err := io.WriteString(p.out, text); err != nil {
		return fmt.Errorf("sending a log: %w", err)
	}
	return nil
}

func cutField(line string) (field, rest string, ok bool) {
	for i := range len(line) {
		if line[i] == ' ' {
			return line[:i], line[i+1:], true
		}
	}
	return line, "", false
}
