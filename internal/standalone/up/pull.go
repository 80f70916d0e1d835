package up

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/bootstraptoken"
	"karmada.io/karmada/internal/standalone/controlplane"
	"karmada.io/karmada/internal/standalone/processnode"
)

const (
	// pullEvery is which members an agent serves unless somebody says how many.
	pullEvery = 3
	// tokenLifetime bounds what a token that nobody deleted is good for.
	tokenLifetime = 10 * time.Minute
	tokenDeletion = 5 * time.Second
)

// pullMembers are the members that an agent serves. Without the agent's program
// there are none, which is wrong only if somebody asked for them; else they are told.
func pullMembers(members []string, count int, tell func(text string)) ([]string, error) {
	chosen := choosePull(members, count)
	if len(chosen) == 0 {
		return nil, nil
	}
	_, err := processnode.Find(programs.Agent)
	switch {
	case err == nil:
		return chosen, nil
	case count > 0:
		return nil, fmt.Errorf("%s register themselves, which needs the program %s: %w", strings.Join(chosen, ", "), programs.Agent, err)
	default:
		tell(fmt.Sprintf("%s: joined without an agent, whose program is not here: %v", strings.Join(chosen, ", "), err))
		return nil, nil
	}
}

// choosePull takes every third member; a count that is given takes those first and
// then others from the last to the first.
func choosePull(members []string, count int) []string {
	var every, others []string
	for n, name := range members {
		if (n+1)%pullEvery == 0 {
			every = append(every, name)
			continue
		}
		others = append([]string{name}, others...)
	}
	if count < 0 {
		return every
	}
	return append(every, others...)[:count]
}

// pulls reports whether an agent serves a member: not where nobody would approve
// its certificate.
func (i *installation) pulls(name string) bool {
	return i.watchesMembers() && slices.Contains(i.state.Pull, name)
}

// registerOne does what `karmadactl token create` and `karmadactl register` do.
func (i *installation) registerOne(ctx context.Context, control *controlplane.ControlPlane, name string, where topology) (err error) {
	karmada := control.Config()
	token, err := bootstraptoken.Create(ctx, karmada, bootstraptoken.Token{
		Expires: time.Now().Add(tokenLifetime), Description: "karmada up registers " + name,
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenDeletion)
		defer cancel()
		if forgotten := bootstraptoken.Delete(ctx, karmada, token.ID); forgotten != nil && err == nil {
			err = forgotten
		}
	}()
	member, err := i.memberConfig(name)
	if err != nil {
		return err
	}
	err = registration.Register{
		Endpoint: strings.TrimPrefix(control.Server(), "https://"), Name: name,
		Token: token.String(), CAHashes: []string{bootstraptoken.PinOf(control.CA().Cert).String()},
		Provider: simulatedProvider, Region: where.Region, Zones: where.Zones,
		CertRotation: true, Timeout: readyTimeout, Member: member,
		Log: func(format string, args ...any) {
			klog.FromContext(ctx).Info(fmt.Sprintf(format, args...), "member", name)
		},
	}.Run(ctx)
	if found := (*registration.PreflightError)(nil); errors.As(err, &found) && hasAgent(ctx, member) {
		// An earlier start was killed before the agent had made its Cluster, which it
		// does now.
		return nil
	}
	return err
}

// hasAgent reports whether a member holds an agent.
func hasAgent(ctx context.Context, member *rest.Config) bool {
	client, err := kubernetes.NewForConfig(member)
	if err != nil {
		return false
	}
	_, err = client.AppsV1().Deployments(clusterv1alpha1.NamespaceKarmadaSystem).Get(ctx, registration.AgentName, metav1.GetOptions{})
	return err == nil
}
