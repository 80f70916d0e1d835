package testenv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// writesOnly is the audit policy of an environment's servers. It records requests that change users'
// objects. Leases are excluded because they change often, and reviews because they change nothing.
const writesOnly = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: authentication.k8s.io}
  - {group: authorization.k8s.io}
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
`

// writeLog counts the write requests in the audit log of an API server.
type writeLog struct {
	path string

	mu     sync.Mutex
	offset int64
	counts map[string]int
}

// Writes returns the number of write requests, by request and user agent, that the control plane,
// the members of the environment and the further members have processed.
func (e *Env) Writes(further ...*Member) (map[string]int, error) {
	total := map[string]int{}
	err := e.writes.addTo(total, "karmada")
	for name, member := range e.Members {
		err = errors.Join(err, member.writes.addTo(total, name))
	}
	for _, member := range further {
		err = errors.Join(err, member.writes.addTo(total, member.options.Name))
	}
	return total, err
}

// addTo reads the new entries of the audit log, and adds the counts of all entries so far to
// total.
func (w *writeLog) addTo(total map[string]int, server string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	file, err := os.Open(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // The server has recorded nothing yet.
	}
	if err != nil {
		return fmt.Errorf("opening the write log of %s: %w", server, err)
	}
	defer func() { _ = file.Close() }()
	recorded, err := io.ReadAll(io.NewSectionReader(file, w.offset, 1<<40))
	if err != nil {
		return fmt.Errorf("reading the write log of %s: %w", server, err)
	}
	// The last line may be incomplete.
	whole := recorded[:bytes.LastIndexByte(recorded, '\n')+1]
	w.offset += int64(len(whole))
	if w.counts == nil {
		w.counts = map[string]int{}
	}
	for line := range bytes.Lines(whole) {
		event := &auditv1.Event{}
		if err := json.Unmarshal(line, event); err != nil {
			return fmt.Errorf("reading the write log of %s: %w", server, err)
		}
		w.counts[describe(event)]++
	}
	for what, count := range w.counts {
		total[server+": "+what] += count
	}
	return nil
}

// describe returns the verb, the resource, the object and the user agent of a write request.
func describe(event *auditv1.Event) string {
	program, _, _ := strings.Cut(event.UserAgent, " ")
	of := event.ObjectRef
	if of == nil {
		return fmt.Sprintf("%s %s by %s", event.Verb, event.RequestURI, program)
	}
	resource := strings.TrimSuffix(of.Resource+"/"+of.Subresource, "/")
	return fmt.Sprintf("%s %s %s by %s", event.Verb, resource, strings.TrimPrefix(of.Namespace+"/"+of.Name, "/"), program)
}
