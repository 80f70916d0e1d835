package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is the CPU time and the memory of a process.
type usage struct {
	cpu time.Duration // user and system time since the start of the process
	rss int64         // resident bytes now
}

func (u usage) add(other usage) usage {
	return usage{cpu: u.cpu + other.cpu, rss: u.rss + other.rss}
}

// tick is the unit of times in /proc: 1/100 s on Linux (USER_HZ).
const tick = 10 * time.Millisecond

// processReader reads the usage of named processes of this machine.
type processReader struct {
	proc     fs.FS // the file system of /proc
	children bool  // include descendants
}

// usageByName returns the usage of each named process.
func (p processReader) usageByName(pids map[string]int) (map[string]usage, error) {
	var parents map[int][]int
	if p.children {
		var err error
		if parents, err = p.childrenByParent(); err != nil {
			return nil, err
		}
	}
	used := map[string]usage{}
	for name, pid := range pids {
		total, err := p.usage(pid)
		if err != nil {
			return nil, fmt.Errorf("measuring process %s: %w", name, err)
		}
		for _, child := range descendants(parents, pid) {
			// A child that has exited in the meantime is not counted.
			if u, err := p.usage(child); err == nil {
				total = total.add(u)
			}
		}
		used[name] = total
	}
	return used, nil
}

func (p processReader) usage(pid int) (usage, error) {
	folder := strconv.Itoa(pid)
	stat, err := fs.ReadFile(p.proc, folder+"/stat")
	if err != nil {
		return usage{}, err
	}
	status, err := fs.ReadFile(p.proc, folder+"/status")
	if err != nil {
		return usage{}, err
	}
	cpu, _, err := parseStat(string(stat))
	if err != nil {
		return usage{}, err
	}
	rss, err := parseStatus(status)
	return usage{cpu: cpu, rss: rss}, err
}

// parseStat parses CPU time and parent of /proc/<pid>/stat. The second field, the name of
// the program, may contain spaces and parentheses.
func parseStat(stat string) (cpu time.Duration, parent int, err error) {
	const parentField, userField, systemField = 1, 11, 12 // index after the name
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) <= systemField {
		return 0, 0, fmt.Errorf("unexpected format of stat: %q", stat)
	}
	var numbers [3]int64
	for i, field := range []int{parentField, userField, systemField} {
		if numbers[i], err = strconv.ParseInt(fields[field], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("unexpected format of stat: %w", err)
		}
	}
	return time.Duration(numbers[1]+numbers[2]) * tick, int(numbers[0]), nil
}

// parseStatus parses the resident memory, in bytes, of /proc/<pid>/status.
func parseStatus(status []byte) (int64, error) { return parseStatusField(status, "VmRSS") }

// parseStatusField parses a size, in bytes, of /proc/<pid>/status.
func parseStatusField(status []byte, name string) (int64, error) {
	for line := range bytes.Lines(status) {
		value, ok := bytes.CutPrefix(line, []byte(name+":"))
		if !ok {
			continue
		}
		kibibytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(value)), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("unexpected format of %s: %w", name, err)
		}
		return kibibytes << 10, nil
	}
	return 0, nil // an exiting process has no memory
}

func (p processReader) childrenByParent() (map[int][]int, error) {
	entries, err := fs.ReadDir(p.proc, ".")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	children := map[int][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := fs.ReadFile(p.proc, entry.Name()+"/stat")
		if err != nil {
			continue // the process has exited
		}
		if _, parent, err := parseStat(string(stat)); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return children, nil
}

// descendants returns the children of a process, their children and so on.
func descendants(children map[int][]int, pid int) []int {
	var found []int
	for _, child := range children[pid] {
		found = append(append(found, child), descendants(children, child)...)
	}
	return found
}

// pids returns the IDs of the processes to measure. A restart can change them.
func (o *options) pids() (map[string]int, error) {
	if o.processesFile == "" {
		return maps.Clone(o.processes), nil
	}
	content, err := os.ReadFile(o.processesFile)
	if err != nil {
		return nil, fmt.Errorf("reading the list of processes: %w", err)
	}
	return parseProcesses(content)
}

func parseProcesses(content []byte) (map[string]int, error) {
	var list []struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("parsing the list of processes: %w", err)
	}
	pids := map[string]int{}
	for _, p := range list {
		pids[p.Name] = p.PID
	}
	return pids, nil
}
