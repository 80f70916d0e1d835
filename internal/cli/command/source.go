package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// StandardInput is the name of standard input in ReadSource.
const StandardInput = "-"

// downloadTimeout limits one download.
const downloadTimeout = time.Minute

// IsURL reports whether the source is a URL, which ReadSource downloads.
func IsURL(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}

// ReadSource returns the content of the source: a path, a URL, or StandardInput. It returns an error if the content is
// larger than limit, in bytes.
func (p *Program) ReadSource(ctx context.Context, source string, limit int64) ([]byte, error) {
	reader, err := p.openSource(ctx, source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	content, err := io.ReadAll(io.LimitReader(reader, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("the file is larger than %d MiB", limit>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", source, err)
	}
	return content, nil
}

func (p *Program) openSource(ctx context.Context, source string) (io.ReadCloser, error) {
	if source == StandardInput {
		return io.NopCloser(p.In), nil
	}
	if !IsURL(source) {
		return os.Open(source)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Timeout: downloadTimeout}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("downloading the file: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("downloading %s: the server responded %s", source, response.Status)
	}
	return response.Body, nil
}
