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
	// maxFileBytes is the size at which a log file is rotated. The previous file is kept.
	maxFileBytes = 4 << 20
	// maxLineBytes is the longest line. A longer line is stored in parts.
	maxLineBytes  = 16 << 10
	timeFormat    = "2006-01-02T15:04:05.000000000Z07:00"
	rotatedSuffix = ".1"
)

// The tags of a line: full or partial, as container runtimes write them.
const (
	tagFull    = "F"
	tagPartial = "P"
)

// logFile is the log of one run of a container. It holds at most twice maxFileBytes.
//
// A log is in the format of container runtimes, holds the newest output, and can be read while it is
// written. A program never waits for its log, and never ends because of its log. Output that cannot
// be written to disk is lost.
type logFile struct {
	path string
	now  func() time.Time

	mu        sync.Mutex
	file      *os.File
	size      int
	rotations int
	// written is closed and replaced when a line was written.
	written chan struct{}
	closed  bool
}

// createLog creates the log of one run of a container. now returns the time for the timestamps.
func createLog(path string, now func() time.Time) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of a container: %w", err)
	}
	return &logFile{path: path, now: now, file: file, written: make(chan struct{})}, nil
}

// Stream returns a writer for one of the program's output streams.
func (f *logFile) Stream(name string) *logStream { return &logStream{log: f, name: name} }

func (f *logFile) writeLine(stream, tag string, text []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	if f.size >= maxFileBytes {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	n, err := fmt.Fprintf(f.file, "%s %s %s %s\n", f.now().UTC().Format(timeFormat), stream, tag, text)
	f.size += n
	close(f.written)
	f.written = make(chan struct{})
	if err != nil {
		return fmt.Errorf("writing the log of a container: %w", err)
	}
	return nil
}

// rotate starts a new file and keeps the previous file. The file may be renamed already, because
// an earlier rotation failed after the rename.
func (f *logFile) rotate() error {
	if err := os.Rename(f.path, f.path+rotatedSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("rotating the log of a container: %w", err)
	}
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of a container: %w", err)
	}
	_ = f.file.Close()
	f.file, f.size = file, 0
	f.rotations++
	return nil
}

// Close closes the log and ends the readLog calls that follow it.
func (f *logFile) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	_ = f.file.Close()
	close(f.written)
}

// removeLog deletes a closed log.
func removeLog(path string) error {
	return errors.Join(removeFile(path), removeFile(path+rotatedSuffix))
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the log of a container: %w", err)
	}
	return nil
}

// state returns the number of rotations, a channel that is closed at the next change, and whether the log is
// closed.
func (f *logFile) state() (rotations int, written <-chan struct{}, closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rotations, f.written, f.closed
}

// logStream splits the output of a program into lines.
type logStream struct {
	log      *logFile
	name     string
	buffered []byte
}

// Write implements io.Writer. It never returns an error, because after an error the goroutine that
// copies the output would stop, and SIGPIPE would kill the program at its next line.
func (s *logStream) Write(text []byte) (int, error) {
	written := len(text)
	for {
		line, after, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			break
		}
		s.put(tagFull, line)
		text = after
	}
	if s.buffered = append(s.buffered, text...); len(s.buffered) >= maxLineBytes {
		s.put(tagPartial, nil)
	}
	return written, nil
}

// put writes one log line that consists of the buffered text and the new text. If the disk is
// full, the line is lost.
func (s *logStream) put(tag string, text []byte) {
	line := append(s.buffered, text...) //nolint:gocritic // it is written before the rest is used again
	s.buffered = line[:0]
	_ = s.log.writeLine(s.name, tag, line)
}

// Flush writes the last line if it has no newline.
func (s *logStream) Flush() {
	if len(s.buffered) > 0 {
		s.put(tagPartial, nil)
	}
}

// logQuery are the options of `kubectl logs`.
type logQuery struct {
	// Follow makes ReadLog continue until the log is closed. Timestamps prefixes each line with its
	// time.
	Follow, Timestamps bool
	// Since excludes lines that were written before this time.
	Since time.Time
	// logStream selects the lines of one output stream. Empty means all streams.
	Stream string
	// Tail limits the number of lines, counted from the end of the log. A negative value means all lines.
	Tail int
	// LimitBytes limits the number of bytes. 0 means no limit.
	LimitBytes int64
}

// readLog copies a log to out. log is the open log, or nil if the log is closed.
func readLog(ctx context.Context, path string, log *logFile, query logQuery, out io.Writer) error {
	printed := &printer{query: query, out: out}
	rotations := 0
	if log != nil {
		rotations, _, _ = log.state()
	}
	var lines []string
	for _, name := range []string{path + rotatedSuffix, path} {
		fileLines, err := printed.readFile(name)
		if err != nil {
			return err
		}
		lines = append(lines, fileLines...)
	}
	if query.Tail >= 0 && len(lines) > query.Tail {
		lines = lines[len(lines)-query.Tail:]
	}
	for _, line := range lines {
		if err := printed.print(line); err != nil {
			return err
		}
	}
	if !query.Follow || log == nil {
		return nil
	}
	return printed.follow(ctx, log, rotations)
}

// errLimitReached is returned when LimitBytes is reached.
var errLimitReached = errors.New("the byte limit is reached")

type printer struct {
	query   logQuery
	out     io.Writer
	printed int64
	// offset is the number of bytes that were read from the current file.
	offset int64
}

// readFile returns the complete lines of a file, and stores the offset after the last complete
// line.
func (p *printer) readFile(path string) ([]string, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the log of a container: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines, read, err := completeLines(file)
	p.offset = read
	return lines, err
}

// completeLines returns the lines up to the last newline, and the offset after that newline.
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

// follow writes new lines until the log is closed or ctx ends.
func (p *printer) follow(ctx context.Context, log *logFile, rotations int) error {
	for {
		current, written, closed := log.state()
		if current != rotations {
			// The log was rotated, so the lines that were written since the last read may be in the
			// previous file.
			if err := p.printFrom(log.path + rotatedSuffix); err != nil {
				return err
			}
			p.offset, rotations = 0, current
		}
		if err := p.printFrom(log.path); err != nil || closed {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-written:
		}
	}
}

func (p *printer) printFrom(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the log of a container: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(p.offset, io.SeekStart); err != nil {
		return fmt.Errorf("reading the log of a container: %w", err)
	}
	lines, read, err := completeLines(file)
	p.offset += read
	for _, line := range lines {
		if err := p.print(line); err != nil {
			return err
		}
	}
	return err
}

// print writes a line as the query requests. Malformed lines are skipped.
func (p *printer) print(line string) error {
	stamp, rest, _ := cutField(line)
	stream, rest, _ := cutField(rest)
	tag, text, ok := cutField(rest)
	if !ok || p.query.Stream != "" && stream != p.query.Stream {
		return nil
	}
	if at, err := time.Parse(timeFormat, stamp); err != nil || at.Before(p.query.Since) {
		return nil //nolint:nilerr // a malformed line was not written by the program
	}
	if tag == tagPartial {
		text = text[:len(text)-1]
	}
	if p.query.Timestamps {
		text = stamp + " " + text
	}
	if limit := p.query.LimitBytes; limit > 0 && p.printed+int64(len(text)) > limit {
		_, err := io.WriteString(p.out, text[:limit-p.printed])
		return errors.Join(errLimitReached, err)
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
