// Asks Argo CD's own code, on a cluster, what Argo CD would think and do.
//
// Questions come as JSON documents on standard input, each is answered with one line on standard output. The settings
// are those of the ConfigMap argocd-cm in the namespace argocd, read as Argo CD reads it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/argo"
	argodiff "github.com/argoproj/argo-cd/v3/util/argo/diff"
	"github.com/argoproj/argo-cd/v3/util/argo/normalizers"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/settings"
	jsonpatch "github.com/evanphx/json-patch"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

const namespaceOfArgoCD = "argocd"

type question struct {
	Ask       string
	Manifest  string
	Namespace string
	Tracking  string
	Live      *unstructured.Unstructured
	Desired   *unstructured.Unstructured
	Action    string
	// Server is for an Application that syncs with ServerSideApply=true.
	Server bool
	// ServerDiff is for one that compares with ServerSideDiff=true.
	ServerDiff bool
	// Webhooks is for one that compares with IncludeMutationWebhook=true.
	Webhooks bool
}

type answer struct {
	Answer any    `json:"answer"`
	Error  string `json:"error"`
}

type argoCD struct {
	ctx      context.Context
	config   *rest.Config
	kubectl  *kube.KubectlCmd
	settings *settings.SettingsManager
	// parser knows the schemas of the cluster; Argo CD keeps it, too.
	parser *managedfields.GvkParser
}

func main() {
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	asked := &argoCD{
		ctx:      ctx,
		config:   config,
		kubectl:  &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}},
		settings: settings.NewSettingsManager(ctx, client, namespaceOfArgoCD),
	}
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var next question
		if err := questions.Decode(&next); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var said answer
		if found, err := asked.answer(next); err != nil {
			said.Error = err.Error()
		} else {
			said.Answer = found
		}
		if err := answers.Encode(said); err != nil {
			return err
		}
	}
}

func (a *argoCD) answer(next question) (any, error) {
	overrides, err := a.settings.GetResourceOverrides()
	if err != nil {
		return nil, err
	}
	vm := lua.VM{ResourceOverrides: overrides}
	switch next.Ask {
	case "read":
		return read(next)
	case "apply":
		return a.apply(next)
	case "diff":
		return a.diff(next, overrides)
	case "health":
		return health.GetResourceHealth(next.Live, lua.ResourceHealthOverrides(overrides))
	case "actions":
		scripts, err := vm.GetResourceActionDiscovery(next.Live)
		if err != nil {
			return nil, err
		}
		return vm.ExecuteResourceActionDiscovery(next.Live, scripts)
	case "act":
		return patch(vm, next)
	}
	return nil, fmt.Errorf("no such question: %q", next.Ask)
}

// read gives the objects of a manifest as they would be compared and applied: in a namespace, and tracked.
func read(next question) ([]*unstructured.Unstructured, error) {
	objects, err := kube.SplitYAML([]byte(next.Manifest))
	if err != nil {
		return nil, err
	}
	method := v1alpha1.TrackingMethod(next.Tracking)
	for _, object := range objects {
		if object.GetNamespace() == "" {
			object.SetNamespace(next.Namespace)
		}
		if err := argo.NewResourceTracking().SetAppInstance(
			object, common.LabelKeyAppInstance, "sinks", next.Namespace, method, "",
		); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (a *argoCD) apply(next question) (string, error) {
	operations, done, err := a.kubectl.ManageResources(a.config)
	if err != nil {
		return "", err
	}
	defer done()
	return operations.ApplyResource(
		a.ctx, next.Desired, cmdutil.DryRunNone, false, true, next.Server, common.ArgoCDSSAManager,
	)
}

func (a *argoCD) diff(next question, overrides map[string]v1alpha1.ResourceOverride) (any, error) {
	options, err := a.settings.GetResourceCompareOptions()
	if err != nil {
		return nil, err
	}
	if a.parser == nil {
		if _, a.parser, err = a.kubectl.LoadOpenAPISchema(a.config); err != nil {
			return nil, err
		}
	}
	builder := argodiff.NewDiffConfigBuilder().
		WithDiffSettings(nil, overrides, options.IgnoreAggregatedRoles, normalizers.IgnoreNormalizerOpts{}).
		WithTracking(common.LabelKeyAppInstance, next.Tracking).
		WithNoCache().
		WithGVKParser(a.parser).
		WithManager(common.ArgoCDSSAManager).
		WithStructuredMergeDiff(next.Server).
		WithServerSideDiff(next.ServerDiff).
		WithIgnoreMutationWebhook(!next.Webhooks)
	if next.ServerDiff {
		applier, done, err := a.kubectl.ManageServerSideDiffDryRuns(a.config)
		if err != nil {
			return nil, err
		}
		defer done()
		builder.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(applier))
	}
	config, err := builder.Build()
	if err != nil {
		return nil, err
	}
	found, err := argodiff.StateDiff(next.Live, next.Desired, config)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"modified":  found.Modified,
		"live":      json.RawMessage(found.NormalizedLive),
		"predicted": json.RawMessage(found.PredictedLive),
	}, nil
}

// patch gives what an action would send to the API server.
func patch(vm lua.VM, next question) (json.RawMessage, error) {
	action, err := vm.GetResourceAction(next.Live, next.Action)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(next.Live)
	if err != nil {
		return nil, err
	}
	impacted, err := vm.ExecuteResourceAction(next.Live, action.ActionLua, nil)
	if err != nil {
		return nil, err
	}
	if len(impacted) != 1 || impacted[0].K8SOperation != lua.PatchOperation {
		return nil, fmt.Errorf("the action %s does more than to change its sink", next.Action)
	}
	after, err := json.Marshal(impacted[0].UnstructuredObj)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(before, after)
}
