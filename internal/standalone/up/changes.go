package up

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/registration/pull"
	"karmada.io/karmada/internal/registration/push"
	"karmada.io/karmada/internal/standalone"
)

// changeTimeout limits the duration of a change to the members.
const changeTimeout = 10 * time.Minute

// memberChange is a request to a running installation to change its members. Exactly one of Members,
// Add and Remove is set.
type memberChange struct {
	// Members is the requested number of members. It cannot be less than the current number.
	Members *int `json:"members,omitempty"`
	// PullMembers is the number of members in pull mode among Members. A negative value means every
	// third member. Existing members keep their mode.
	PullMembers int `json:"pullMembers,omitempty"`
	// Add is the name of a member to add. Pull selects pull mode for it, and Region is its region. An
	// empty region selects a default region.
	Add    string `json:"add,omitempty"`
	Pull   bool   `json:"pull,omitempty"`
	Region string `json:"region,omitempty"`
	// Remove is the name of a member to remove. Force removes it even if its objects cannot be deleted.
	Remove string `json:"remove,omitempty"`
	Force  bool   `json:"force,omitempty"`
}

// validate returns an error if the change is invalid for every installation.
func (m memberChange) validate() error {
	switch {
	case m.Members != nil && m.Add == "" && m.Remove == "":
		if *m.Members < 0 || *m.Members > maxMembers || m.PullMembers > *m.Members {
			return fmt.Errorf("--members %d with --pull-members %d: both must be between 0 and %d, and --pull-members not more than --members",
				*m.Members, m.PullMembers, maxMembers)
		}
		return nil
	case m.Members == nil && m.Add != "" && m.Remove == "":
		if errs := validation.IsValidLabelValue(topologyOf(m.Region).Zones[0]); m.Region != "" && len(errs) > 0 {
			return fmt.Errorf("--region %q: it is a label of nodes and part of the labels of zones: %s", m.Region, strings.Join(errs, "; "))
		}
		return validateMemberName(m.Add)
	case m.Members == nil && m.Add == "" && m.Remove != "":
		return nil
	}
	return errors.New("a change must set one of members, add and remove")
}

var errChangeInProgress = errors.New("another change of the members is in progress: repeat the command when it has ended")

// change changes the members as requested and reports the progress.
func (i *installation) change(ctx context.Context, change memberChange, progress *progressReporter) error {
	if err := change.validate(); err != nil {
		return err
	}
	if !i.changeMu.TryLock() {
		return errChangeInProgress
	}
	defer i.changeMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	switch {
	case change.Members != nil:
		return i.resize(ctx, *change.Members, change.PullMembers, progress)
	case change.Add != "":
		return i.addMember(ctx, change, progress)
	default:
		return i.removeMember(ctx, change.Remove, change.Force, progress)
	}
}

// resize adds members until there are count members.
func (i *installation) resize(ctx context.Context, count, pullCount int, progress *progressReporter) error {
	members, removed := resizeMembers(i.state.Members, count)
	if len(removed) > 0 {
		return fmt.Errorf("--members %d: %s run (%s): remove a member with `karmada member remove %s`",
			count, countOf(len(i.state.Members), "member"), strings.Join(i.state.Members, ", "), removed[len(removed)-1])
	}
	added := members[len(i.state.Members):]
	if len(added) == 0 {
		found, err := i.joinRest(ctx, i.state.Members, progress)
		if err == nil && !found {
			progress.report(event{Text: "No change: the members are " + describeMembers(i.state.Members)})
		}
		return err
	}
	chosen, err := selectPullMembers(members, pullCount, i.programsDisabled, func(text string) { progress.report(event{Text: text}) })
	if err != nil {
		return err
	}
	return i.addMembers(ctx, added, intersect(chosen, added), progress)
}

func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
}

// joinRest registers those of the named members that an earlier change could not register. It reports
// whether there are any.
func (i *installation) joinRest(ctx context.Context, names []string, progress *progressReporter) (found bool, err error) {
	if i.state.SkipJoin {
		return false, nil
	}
	clusters, err := listClusters(ctx, i.control.Config())
	if err != nil {
		return false, err
	}
	rest := slices.DeleteFunc(i.supervisorsOf(names), func(m *memberSupervisor) bool {
		return slices.ContainsFunc(clusters, func(cluster clusterv1alpha1.Cluster) bool { return i.isClusterOf(&cluster, m.options.Name) })
	})
	if len(rest) == 0 {
		return false, nil
	}
	return true, i.registerMembers(ctx, rest, progress)
}

// supervisorsOf returns the named members' supervisors.
func (i *installation) supervisorsOf(names []string) []*memberSupervisor {
	i.stateMu.Lock()
	defer i.stateMu.Unlock()
	return slices.DeleteFunc(slices.Clone(i.supervisors), func(m *memberSupervisor) bool { return !slices.Contains(names, m.options.Name) })
}

func describeMembers(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// addMember adds one member. If the member already exists, addMember completes an earlier registration
// that failed.
func (i *installation) addMember(ctx context.Context, change memberChange, progress *progressReporter) error {
	name := change.Add
	if slices.Contains(i.state.Members, name) {
		found, err := i.joinRest(ctx, []string{name}, progress)
		if err == nil && !found {
			err = fmt.Errorf("there is already a member %q: choose another name", name)
		}
		return err
	}
	if len(i.state.Members) >= maxMembers {
		return fmt.Errorf("%d members run, and no more are possible: remove one with `karmada member remove NAME`", maxMembers)
	}
	pullCount := 0
	if change.Pull {
		pullCount = 1
	}
	inPullMode, err := selectPullMembers([]string{name}, pullCount, i.programsDisabled, nil)
	if err != nil {
		return err
	}
	if change.Region != "" {
		if before := i.state.Regions[name]; before != "" && before != change.Region {
			return fmt.Errorf("--region %s: the nodes of member %q, whose data was kept, are in region %s: omit --region, or choose another name",
				change.Region, name, before)
		}
		i.state.Regions[name] = change.Region
	}
	return i.addMembers(ctx, []string{name}, inPullMode, progress)
}

// addMembers starts members, registers them, and waits until they are Ready. Members that do not start
// are removed again. If only the registration fails, the members stay, and repeating the change or
// starting the installation again registers them.
func (i *installation) addMembers(ctx context.Context, names, inPullMode []string, progress *progressReporter) error {
	isNew := map[string]bool{}
	for _, name := range names {
		_, err := os.Stat(i.dir.memberDir(name))
		isNew[name] = errors.Is(err, os.ErrNotExist)
	}
	i.state.Members = append(slices.Clone(i.state.Members), names...)
	i.state.PullMembers = append(slices.Clone(i.state.PullMembers), inPullMode...)
	if err := i.prepareMembers(names, len(names), progress); err != nil {
		return err
	}
	started := i.startMembers(i.life, names) //nolint:contextcheck // the members run after the change
	if err := i.awaitMembers(ctx, started, progress); err != nil {
		errs := []error{fmt.Errorf("%w: nothing was added", err)}
		for _, name := range names {
			errs = append(errs, i.stopMember(ctx, name, isNew[name], progress))
		}
		return errors.Join(errs...)
	}
	if err := i.registerMembers(ctx, started, progress); err != nil {
		return fmt.Errorf("%w: repeat the command to register the member, or remove it with `karmada member remove %s`", err, names[len(names)-1])
	}
	return nil
}

// removeMember removes the member's Cluster, ends its process, and removes its data.
func (i *installation) removeMember(ctx context.Context, name string, force bool, progress *progressReporter) error {
	if !slices.Contains(i.state.Members, name) {
		return fmt.Errorf("there is no member %q: the members are: %s", name, describeMembers(i.state.Members))
	}
	if err := progress.step("Cluster of "+name+" removed", func() error { return i.removeCluster(ctx, name, force) }); err != nil {
		return err
	}
	return progress.step(name+" stopped and its data removed", func() error { return i.stopMember(ctx, name, true, progress) })
}

// isClusterOf reports whether the Cluster is the given member. The Cluster's name may differ from the
// member's name.
func (i *installation) isClusterOf(cluster *clusterv1alpha1.Cluster, member string) bool {
	return cluster.Spec.APIEndpoint == standalone.LoopbackURL(i.state.Ports[member]) ||
		cluster.Name == member && isMemberCluster(cluster, i.state.Ports[member])
}

// removeCluster removes the member's Cluster in the same way as `karmadactl unjoin` and `karmadactl
// unregister`.
func (i *installation) removeCluster(ctx context.Context, member string, force bool) error {
	clusters, err := listClusters(ctx, i.control.Config())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(clusters, func(cluster clusterv1alpha1.Cluster) bool { return i.isClusterOf(&cluster, member) })
	if at < 0 {
		return nil
	}
	config, err := i.memberConfig(member)
	if err != nil {
		return err
	}
	if clusters[at].Spec.SyncMode == clusterv1alpha1.Pull {
		err = pull.Unregister{Name: clusters[at].Name, Karmada: i.control.Config(), Member: config, Force: force}.Run(ctx)
	} else {
		err = push.Unjoin{Name: clusters[at].Name, Karmada: i.control.Config(), Member: config, Force: force}.Run(ctx)
	}
	if err != nil && !force {
		return fmt.Errorf("%w: the member keeps running; --force removes it even if it does not respond, or if its objects cannot be deleted",
			err)
	}
	return err
}

// stopMember ends the member's process and removes the member from the installation. If deleteData is
// true, it also deletes the member's data.
func (i *installation) stopMember(ctx context.Context, name string, deleteData bool, progress *progressReporter) error {
	for _, member := range i.supervisorsOf([]string{name}) {
		member.stop()
		select {
		case <-member.ended:
		case <-ctx.Done():
			return fmt.Errorf("the process of member %q has not ended: %w", name, ctx.Err())
		}
	}
	i.forgetMember(name, deleteData)
	if err := i.storeState(); err != nil {
		return err
	}
	i.recordProcesses()
	errs := []error{i.writeMembersKubeconfig(), i.publishEstimators(ctx, progress)}
	if deleteData {
		certs := pki.Dir{Path: i.dir.estimatorsDir()}
		errs = append(errs, i.dir.deleteMemberDir(name), os.RemoveAll(certs.CertFile(estimatorServerCert(name))),
			os.RemoveAll(certs.KeyFile(estimatorServerCert(name))))
	}
	return errors.Join(errs...)
}

// forgetMember removes a member from the state. If the member's data is kept, its ports and region are
// kept too.
func (i *installation) forgetMember(name string, deleteData bool) {
	i.state.Members = removeItem(slices.Clone(i.state.Members), name)
	i.state.PullMembers = removeItem(slices.Clone(i.state.PullMembers), name)
	if deleteData {
		delete(i.state.Regions, name)
		delete(i.state.Ports, name)
		delete(i.state.Ports, estimatorPortName(name))
	}
	i.stateMu.Lock()
	defer i.stateMu.Unlock()
	delete(i.state.RegistrationTokens, name)
	i.supervisors = slices.DeleteFunc(slices.Clone(i.supervisors), func(m *memberSupervisor) bool { return m.options.Name == name })
}
