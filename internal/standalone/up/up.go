// Package up implements `karmada up`, `down`, `status` and the simulated member clusters.
//
// One process runs the control plane. Each member cluster is a child process of the same program. A
// child process ends when its parent ends, even if the parent is killed. All data is in one data
// directory, which only one process can use at a time.
package up

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/version"
	kubernetesversion "k8s.io/component-base/version"

	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/controlplane"
	"karmada.io/karmada/internal/standalone/processnode"
)

// Options are the flags of `karmada up`.
type Options struct {
	// DataDir is the directory that contains all data. It is created if it does not exist.
	DataDir string
	// BindAddress is the address on which the control plane's API server listens.
	BindAddress string
	// Members is the number of simulated member clusters. A negative value means the number of the last
	// start.
	Members int
	// PullMembers is the number of members in pull mode. A negative value means that every third member
	// is in pull mode.
	PullMembers int
	// NodesPerMember is the number of nodes in each member. 0 means the number of the last start.
	NodesPerMember int
	// CertificateLifetime is the validity of certificates. They are renewed automatically.
	CertificateLifetime time.Duration
	// Join selects whether the members are registered. Nil means the value of the last start or, in the
	// first start, true.
	Join *bool
	// Components selects the Karmada components that run in this process, in the syntax of
	// programs.IsSelected.
	Components []string
	// Gates are all components' feature gates. Nil selects the defaults.
	Gates *gates.Set
	// ExtraConfig are flags for components, in the syntax of components.Configure.
	ExtraConfig []string
	// AuditLog is the path of the audit log that the control plane's API server writes. If it is empty,
	// no audit log is written.
	AuditLog string
	// Failover selects whether NoExecute taints evict workloads. It enables the feature gate Failover
	// unless Gates sets it, and sets the component flags that evictions need.
	Failover bool
	// MemberPrograms selects whether Pods with Karmada images in members run as processes on this
	// machine. Nil means that they run if this is safe.
	MemberPrograms *bool
}

// selectComponents returns the names of the components that this process runs, and of those that the
// user runs.
func (o Options) selectComponents() (run, excluded []string) {
	for _, name := range components.SelectableNames() {
		if programs.IsSelected(o.Components, name, true) {
			run = append(run, name)
			continue
		}
		excluded = append(excluded, name)
	}
	return run, excluded
}

// readyTimeout limits the time in which members must become Ready.
const readyTimeout = 4 * time.Minute

// installation is one run of `karmada up`.
type installation struct {
	options  Options
	dir      dataDir
	state    storedState
	progress *progressReporter
	// control is the control plane. It is nil until the control plane has started.
	control     *controlplane.ControlPlane
	supervisors []*memberSupervisor
	// programsDisabled is the reason why members run no programs, or nil if they do. idleMembers are
	// the pull mode members whose agents do not run for this reason.
	programsDisabled error
	idleMembers      []string
	// life ends when the installation stops.
	life context.Context //nolint:containedctx // members run longer than the change that adds them
	// startedAt is the start time of this run.
	startedAt time.Time
	wg        sync.WaitGroup

	// changeMu is locked while members are added or removed, so that there is only one change at a
	// time.
	changeMu sync.Mutex
	// stateMu guards state and supervisors.
	stateMu sync.Mutex
}

// runInstallation starts everything, reports when the installation is ready, and runs until ctx ends or
// a part of the control plane fails.
func runInstallation(ctx context.Context, o Options, log zapcore.WriteSyncer, progress *progressReporter) error {
	i := &installation{options: o, dir: dataDir{o.DataDir}, progress: progress, startedAt: time.Now()}
	release, err := i.prepare(ctx)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer i.wg.Wait()
	defer cancel()

	i.life = ctx
	i.wg.Go(func() { i.dir.rotateLogs(ctx, maxLogBytes) })
	started := i.startMembers(ctx, i.state.Members)
	if err := i.startControlPlane(ctx, log); err != nil {
		return err
	}
	defer i.control.Stop()
	if err := pki.WriteKubeconfig(i.dir.karmadaKubeconfig(), i.control.AdminContext()); err != nil {
		return err
	}
	i.wg.Go(func() { i.maintainEstimatorCertificates(ctx, i.control.InProcessConfig()) })
	if err := i.awaitMembers(ctx, started, progress); err != nil {
		return err
	}
	if err := i.registerMembers(ctx, started, progress); err != nil {
		return err
	}
	stopServing, err := i.serveChanges(ctx)
	if err != nil {
		return err
	}
	defer stopServing()
	i.recordProcesses()
	progress.report(event{Text: i.nextSteps()})
	progress.report(event{Ready: true})
	return awaitFailure(ctx, i.control.Cluster)
}

func (i *installation) startControlPlane(ctx context.Context, log zapcore.WriteSyncer) (err error) {
	o := i.options
	components, _ := o.selectComponents()
	i.control, err = controlplane.Start(ctx, controlplane.Options{
		Dir: i.dir.controlPlaneDir(), BindAddress: o.BindAddress, Ports: i.state.Ports, Fsync: true, Log: log, Step: i.progress.step,
		Components: components, Gates: o.Gates, ExtraConfig: o.ExtraConfig, CertificateLifetime: o.CertificateLifetime, AuditLog: o.AuditLog,
		StartOverAdvice: i.dir.startOverAdvice(),
		DefaultConfig:   slices.Concat(i.dir.estimatorClientConfig(), controlplane.LocalMembersConfig(), o.failoverConfig()),
	})
	return err
}

// prepare locks the data directory and updates the stored state.
func (i *installation) prepare(ctx context.Context) (release func(), err error) {
	if err := i.dir.create(); err != nil {
		return nil, err
	}
	unlock, err := i.dir.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	if i.state, err = i.dir.readState(); err != nil {
		return nil, err
	}
	if err = i.updateState(); err != nil {
		return nil, err
	}
	if err = choosePorts(i.state.Ports, []string{controlplane.APIServer}, components.ServerNames()); err != nil {
		return nil, err
	}
	if err = i.dir.removeDeletedMembers(); err != nil {
		return nil, err
	}
	return unlock, i.prepareMembers(i.state.Members, 1+len(i.state.Members), i.progress)
}

// updateState merges this start's options into the state of the last start.
func (i *installation) updateState() (err error) {
	if i.state.Kubernetes, err = validateDataVersion(i.state.Kubernetes, kubernetesversion.DefaultKubeBinaryVersion); err != nil {
		return fmt.Errorf("data directory %s: %w", i.dir.path, err)
	}
	if i.options.Join != nil {
		i.state.SkipJoin = !*i.options.Join
	}
	if i.options.NodesPerMember > 0 {
		i.state.NodesPerMember = i.options.NodesPerMember
	}
	i.state.NodesPerMember = cmp.Or(i.state.NodesPerMember, standalone.DefaultNodeOptions().Count)
	i.state.Settings = i.options.settings()
	i.programsDisabled = i.options.programsDisabledReason(processnode.CheckConfinement())
	if err := i.updateMembers(); err != nil {
		return err
	}
	i.reportIdleMembers()
	return nil
}

// validateDataVersion returns the Kubernetes version that writes the data from now on. It returns an
// error if a newer version wrote the data, because an API server may not be able to read data that a
// newer version wrote.
func validateDataVersion(written, ours string) (string, error) {
	if written == "" {
		return ours, nil
	}
	last, err := version.ParseGeneric(written)
	if err != nil {
		return "", fmt.Errorf("parsing the Kubernetes version that wrote it: %w", err)
	}
	if own := version.MustParseGeneric(ours); own.LessThan(last) {
		return "", fmt.Errorf("it was written by Kubernetes %s, and this program has %s: use the previous program or a newer one, or choose another --data-dir", written, ours)
	}
	return ours, nil
}

func countOf(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", count, what)
}

// recordProcesses writes the process IDs to a file, for measuring and debugging. No code depends on the
// file.
func (i *installation) recordProcesses() {
	i.stateMu.Lock()
	defer i.stateMu.Unlock()
	_ = writeJSON(i.dir.processesFile(), i.processes())
}

func (i *installation) processes() []processRecord {
	processes := []processRecord{{Name: "karmada", PID: os.Getpid()}}
	for _, member := range i.supervisors {
		processes = append(processes, processRecord{Name: member.options.Name, PID: member.pid()})
	}
	return processes
}

// nextSteps returns a text that lists commands that the user can run next.
func (i *installation) nextSteps() string {
	text := fmt.Sprintf(`
Karmada is up. The API server is the context karmada-apiserver in
  %s
Try:
  export KUBECONFIG=%[1]s
  kubectl get clusters
`, console.ShellWord(i.dir.karmadaKubeconfig()))
	if len(i.state.Members) > 0 {
		text += fmt.Sprintf("The members are the contexts in\n  %s\n", i.dir.membersKubeconfig())
	}
	if excluded := i.state.Settings.excludedComponents(); len(excluded) > 0 {
		text += fmt.Sprintf("Components to run yourself with --kubeconfig %s:\n  %s\n", console.ShellWord(i.dir.karmadaKubeconfig()),
			strings.Join(excluded, " "))
	}
	return text + fmt.Sprintf("Logs are in %s. Stop with\n  %s", i.dir.logsDir(), i.dir.stopCommand())
}
