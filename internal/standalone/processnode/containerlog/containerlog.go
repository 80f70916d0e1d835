// Package containerlog answers "what has a container written?": one file for each
// life of a container, in the format of container runtimes, which is read while it is
// written.
//
// What it promises: a log holds twice maxFile at most, of which the newest part. A
// program never waits for its log, nor ends because of it: what the disk does not
// take is lost.
package containerlog

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
	// maxFile is the size at which a log begins anew; the part before is kept.
	maxFile = 4 << 20
	// maxLine is how long a piece of a line may be; longer lines are kept in pieces.
	maxLine    = 16 << 10
	timeFormat = "2006-01-02T15:04:05.000000000Z07:00"
	older      = ".1"
)

// The marks of a line, as container runtimes write them.
const (
	wholeLine = "F"
	linePiece = "P"
)

// File is what one life of a container wrote. It holds twice maxFile at most.
type File struct {
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

// Create begins the log of one life of a container. Its lines bear the time that now
// tells.
func Create(path string, now func() time.Time) (*File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of a container: %w", err)
	}
	return &File{path: path, now: now, file: file, news: make(chan struct{})}, nil
}

// Stream is a writer for one of the program's outputs.
func (l *File) Stream(name string) *Stream { return &Stream{log: l, name: name} }

func (l *File) line(stream, mark string, text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return os.ErrClosed
	}
	if l.size >= maxFile {
		if err := l.turn(); err != nil {
			return err
		}
	}
	n, err := fmt.Fprintf(l.file, "%s %s %s %s\n", l.now().UTC().Format(timeFormat), stream, mark, text)
	l.size += n
	close(l.news)
	l.news = make(chan struct{})
	if err != nil {
		return fmt.Errorf("writing the log of a container: %w", err)
	}
	return nil
}

// turn begins a new file and keeps the last one. A turn that was cut short has
// renamed it already.
func (l *File) turn() error {
	if err := os.Rename(l.path, l.path+older); err != nil && !errors.Is(err, os.ErrNotExist) {
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

// Close ends the log; whoever follows it comes to its end.
func (l *File) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	_ = l.file.Close()
	close(l.news)
}

// Remove removes a log that nobody writes any more.
func Remove(path string) error {
	return errors.Join(remove(path), remove(path+older))
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the log of a container: %w", err)
	}
	return nil
}

// state tells how often the log began anew, what to wait for, and whether it ended.
func (l *File) state() (turns int, news <-chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turns, l.news, l.closed
}

// Stream cuts what a program writes into lines.
type Stream struct {
	log  *File
	name string
	rest []byte
}

// Write implements io.Writer. It takes everything: whoever copies the output of a
// program would hang up after an error, and the program die of its next line.
func (s *Stream) Write(text []byte) (int, error) {
	written := len(text)
	for {
		line, after, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			break
		}
		s.put(wholeLine, line)
		text = after
	}
	if s.rest = append(s.rest, text...); len(s.rest) >= maxLine {
		s.put(linePiece, nil)
	}
	return written, nil
}

// put writes what there is of a line. A disk that is full costs the line.
func (s *Stream) put(mark string, text []byte) {
	line := append(s.rest, text...) //nolint:gocritic // it is written before the rest is used again
	s.rest = line[:0]
	_ = s.log.line(s.name, mark, line)
}

// Flush writes a last line that has no end.
func (s *Stream) Flush() {
	if len(s.rest) > 0 {
		s.put(linePiece, nil)
	}
}

// Query is what `kubectl logs` asks for.
type Query struct {
	// Follow goes on until the log ends; Timestamps puts the time before each line.
	Follow, Timestamps bool
	// Since leaves out what was written before.
	Since time.Time
	// Stream leaves out what was written on others; empty means none is left out.
	Stream string
	// Tail is how many lines at most, negative for all.
	Tail int
	// Limit is how many bytes at most, 0 for all.
	Limit int64
}

// Read copies a log to out. log is the one that is still written, nil if none is.
func Read(ctx context.Context, path string, log *File, query Query, out io.Writer) error {
	printed := &printer{query: query, out: out}
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
	if query.Tail >= 0 && len(old) > query.Tail {
		old = old[len(old)-query.Tail:]
	}
	for _, line := range old {
		if err := printed.print(line); err != nil {
			return err
		}
	}
	if !query.Follow || log == nil {
		return nil
	}
	return printed.follow(ctx, log, turns)
}

// errEnough tells that the limit of bytes is reached.
var errEnough = errors.New("the limit is reached")

type printer struct {
	query   Query
	out     io.Writer
	printed int64
	// at is how far the present file was read.
	at int64
}

// wanted are the lines of a file that are asked for; it remembers how far it read.
func (p *printer) wanted(path string) ([]string, error) {
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
func (p *printer) follow(ctx context.Context, log *File, turns int) error {
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

func (p *printer) printFrom(path string) error {
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
func (p *printer) print(line string) error {
	stamp, rest, _ := cutField(line)
	stream, rest, _ := cutField(rest)
	mark, text, ok := cutField(rest)
	if !ok || p.query.Stream != "" && stream != p.query.Stream {
		return nil
	}
	if at, err := time.Parse(timeFormat, stamp); err != nil || at.Before(p.query.Since) {
		return nil //nolint:nilerr // what is no line of a log was not written by the program
	}
	if mark == linePiece {
		text = text[:len(text)-1]
	}
	if p.query.Timestamps {
		text = stamp + " " + text
	}
	if limit := p.query.Limit; limit > 0 && p.printed+int64(len(text)) > limit {
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
