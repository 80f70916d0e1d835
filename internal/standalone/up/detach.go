package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// outputLog is the name of the log that contains a detached process's output.
const outputLog = "output"

// runDetached starts the installation as a background process, prints the process's events, and returns
// when the installation is ready.
func runDetached(ctx context.Context, o Options, out io.Writer) error {
	dir := dataDir{o.DataDir}
	if err := dir.ensureUnused(ctx); err != nil {
		return err
	}
	if err := dir.create(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("locating this program: %w", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("creating a pipe: %w", err)
	}
	defer func() { _ = reader.Close() }()
	output, err := os.OpenFile(dir.logFile(outputLog), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer func() { _ = output.Close() }()

	cmd := exec.Command(self, o.arguments()...)
	// Pass the program name that the user typed, because the background process prints commands that
	// the user can run.
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), eventsFDVariable+"=3")
	cmd.ExtraFiles = []*os.File{writer}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	_ = writer.Close()
	// If the user interrupts the wait, stop the background process too.
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	return showEvents(reader, out, dir.logFile("karmada"), dir.logFile(outputLog))
}

func (o Options) arguments() []string {
	args := []string{
		"up", "--data-dir", o.DataDir, "--" + bindAddressFlag, o.BindAddress,
		"--" + componentsFlag + "=" + strings.Join(o.Components, ","),
		"--" + gatesFlag + "=" + o.Gates.Given(), "--" + auditLogFlag + "=" + o.AuditLog,
		"--" + failoverFlag + "=" + strconv.FormatBool(o.Failover),
	}
	// Pass all settings, because for settings that are not passed the values of the last start would be
	// used.
	for _, entry := range append([]string{""}, o.ExtraConfig...) {
		args = append(args, "--"+extraConfigFlag+"="+entry)
	}
	if o.MemberPrograms != nil {
		args = append(args, "--member-programs="+strconv.FormatBool(*o.MemberPrograms))
	}
	if o.CertificateLifetime != 0 {
		args = append(args, "--certificate-lifetime", o.CertificateLifetime.String())
	}
	if o.Join != nil {
		args = append(args, "--join="+strconv.FormatBool(*o.Join))
	}
	if o.NodesPerMember > 0 {
		args = append(args, "--nodes-per-member", strconv.Itoa(o.NodesPerMember))
	}
	if o.Members >= 0 {
		args = append(args, "--members", strconv.Itoa(o.Members))
	}
	if o.PullMembers >= 0 {
		args = append(args, "--pull-members", strconv.Itoa(o.PullMembers))
	}
	return args
}

// showEvents prints a process's events until it is ready or has failed.
func showEvents(events io.Reader, out io.Writer, logs ...string) error {
	show, end := newScreen(out)
	defer end()
	lines := json.NewDecoder(events)
	for {
		var e event
		if err := lines.Decode(&e); err != nil {
			return fmt.Errorf("%w: see %s and %s", errEndedEarly, logs[0], logs[1])
		}
		show(e)
		switch {
		case e.Ready:
			return nil
		case e.Error != "" && e.Step == "":
			return fmt.Errorf("%w (see %s)", errors.New(e.Error), logs[0])
		}
	}
}
