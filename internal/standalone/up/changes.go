package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/pull"
	"karmada.io/karmada/internal/registration/push"
	"karmada.io/karmada/internal/standalone"
)

// changeTimeout is the time limit of one change of the members.
const changeTimeout = 10 * time.Minute

// memberChange is a request to a running installation. Exactly one of Members, Add and Remove is
// set.
type memberChange struct {
	// Members is the number of members to have. It cannot be less than the present number.
	Members *int `json:"members,omitempty"`
	// PullMembers is the number of members in pull mode among Members. A negative value means every
	// third. Members that exist keep their mode.
	PullMembers int `json:"pullMembers,omitempty"`
	// Add is the name of a member to add. Pull is its mode, and Region its region; an empty region
	// means a default one.
	Add    string `json:"add,omitempty"`
	Pull   bool   `json:"pull,omitempty"`
	Region string `json:"region,omitempty"`
	// Remove is the name of a member to remove. Force removes it even if its Cluster cannot be
	// removed in the usual way.
	Remove string `json:"remove,omitempty"`
	Force  bool   `json:"force,omitempty"`
}

var errChangeInProgress = errors.New("another change of the members is in progress: repeat the command when it has ended")

// change carries out a change of the members and reports its progress.
func (i *installation) change(ctx context.Context, change memberChange, progress *progressReporter) error {
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
		progress.report(event{Text: fmt.Sprintf("%s run already: %s", countOf(count, "member"), strings.Join(members, ", "))})
		return nil
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

// addMember adds one member.
func (i *installation) addMember(ctx context.Context, change memberChange, progress *progressReporter) error {
	name := change.Add
	if slices.Contains(i.state.Members, name) {
		return fmt.Errorf("member %q runs already: choose another name", name)
	}
	if len(i.state.Members) >= maxMembers {
		return fmt.Errorf("%d members run, and no more are possible: remove one with `karmada member remove NAME`", maxMembers)
	}
	if err := registration.ValidateName(name); err != nil {
		return err
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
			return fmt.Errorf("--region %s: the nodes of member %q, whose data was kept, are in region %s: omit --region, or choose another name", change.Region, name, before)
		}
		i.state.Regions[name] = change.Region
	}
	return i.addMembers(ctx, []string{name}, inPullMode, progress)
}

// addMembers starts members, registers them, and waits until they are Ready. They stay members of
// the installation also if this fails: the next start continues.
func (i *installation) addMembers(ctx context.Context, names, inPullMode []string, progress *progressReporter) error {
	i.state.Members = append(slices.Clone(i.state.Members), names...)
	i.state.PullMembers = append(slices.Clone(i.state.PullMembers), inPullMode...)
	if err := i.prepareMembers(names, len(names), progress); err != nil {
		return err
	}
	started := i.startMembers(i.life, names) //nolint:contextcheck // the members run after the change
	if err := i.setUpMembers(ctx, started, progress); err != nil {
		return fmt.Errorf("%w: the next `karmada up` continues, or remove the member with `karmada member remove %s`", err, names[len(names)-1])
	}
	return nil
}

// removeMember removes the Cluster of a member, ends its process, and removes its data.
func (i *installation) removeMember(ctx context.Context, name string, force bool, progress *progressReporter) error {
	if !slices.Contains(i.state.Members, name) {
		return fmt.Errorf("there is no member %q: the members are %s", name, strings.Join(i.state.Members, ", "))
	}
	if err := progress.step("Cluster of "+name+" removed", func() error { return i.removeCluster(ctx, name, force, progress) }); err != nil {
		return err
	}
	return progress.step(name+" stopped and its data removed", func() error { return i.stopAndDelete(ctx, name, progress) })
}

// removeCluster removes the Cluster of a member, in the same way as `karmadactl unjoin` and
// `karmadactl unregister`. The name of the Cluster may differ from the name of the member.
func (i *installation) removeCluster(ctx context.Context, member string, force bool, progress *progressReporter) error {
	clusters, err := listClusters(ctx, i.control.Config())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(clusters, func(cluster clusterv1alpha1.Cluster) bool {
		return cluster.Spec.APIEndpoint == standalone.LoopbackURL(i.state.Ports[member]) ||
			cluster.Name == member && isMemberCluster(&cluster, i.state.Ports[member])
	})
	if at < 0 {
		return nil
	}
	config, err := i.memberConfig(member)
	if err != nil {
		return err
	}
	warn := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.HasPrefix(text, "warning: ") {
			progress.report(event{Text: text})
		}
	}
	if clusters[at].Spec.SyncMode == clusterv1alpha1.Pull {
		err = pull.Unregister{Name: clusters[at].Name, Karmada: i.control.Config(), Member: config, Force: force, Log: warn}.Run(ctx)
	} else {
		err = push.Unjoin{Name: clusters[at].Name, Karmada: i.control.Config(), Member: config, Force: force, Log: warn}.Run(ctx)
	}
	if err != nil && !force {
		return fmt.Errorf("%w: nothing else of the member is removed; `karmada member remove %s --force` removes it in any case", err, member)
	}
	return err
}

// stopAndDelete ends the process of a member and removes its data.
func (i *installation) stopAndDelete(ctx context.Context, name string, progress *progressReporter) error {
	i.stateMu.Lock()
	at := slices.IndexFunc(i.supervisors, func(m *memberSupervisor) bool { return m.options.Name == name })
	stopped := i.supervisors[at]
	i.supervisors = slices.Delete(slices.Clone(i.supervisors), at, at+1)
	i.stateMu.Unlock()
	stopped.stop()
	select {
	case <-stopped.ended:
	case <-ctx.Done():
		return fmt.Errorf("the process of member %q has not ended: %w", name, ctx.Err())
	}
	i.forgetMember(name)
	if err := i.storeState(); err != nil {
		return err
	}
	i.recordProcesses()
	certs := pki.Dir{Path: i.dir.estimatorsDir()}
	return errors.Join(
		i.dir.deleteMemberDir(name), i.writeMembersKubeconfig(), i.publishEstimators(ctx, progress),
		os.RemoveAll(certs.CertFile(estimatorServerCert(name))), os.RemoveAll(certs.KeyFile(estimatorServerCert(name))),
	)
}

// forgetMember removes a member from the state.
func (i *installation) forgetMember(name string) {
	i.state.Members = removeItem(slices.Clone(i.state.Members), name)
	i.state.PullMembers = removeItem(slices.Clone(i.state.PullMembers), name)
	delete(i.state.Regions, name)
	delete(i.state.Ports, name)
	delete(i.state.Ports, estimatorPortName(name))
	i.stateMu.Lock()
	delete(i.state.RegistrationTokens, name)
	i.stateMu.Unlock()
}
