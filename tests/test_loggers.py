"""MLflow and Weights & Biases: what the callbacks call of the client libraries, which are stubs here."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, optim, training

X, Y = [[0.0], [1.0], [2.0], [3.0]], [[1.0], [3.0], [5.0], [7.0]]


@pytest.fixture(autouse=True)
def _numpy() -> Any:
    with ember_ml.use_backend("numpy"):
        yield


class Calls(list[Any]):
    """Calls of a library: names, arguments and options."""

    def named(self, name: str) -> list[Any]:
        return [(args, options) for called, args, options in self if called == name]


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = ModuleType("mlflow")
    module.calls, module.active, module.count = Calls(), None, 0

    def add(name: str) -> None:
        setattr(module, name, lambda *args, **options: module.calls.append((name, args, options)))

    add("log_metrics")
    # The address that is set, ``None`` for none, the experiment, and the experiments by name.
    module.uri, module.experiments = None, {}
    module.tracking = SimpleNamespace(fluent=SimpleNamespace(_active_experiment_id=None))
    module.get_tracking_uri = lambda: module.uri or "default"
    module.is_tracking_uri_set = lambda: module.uri is not None

    def set_tracking_uri(uri: str | None) -> None:
        assert module.active is None, "the active run has another address"
        module.uri = uri

    def get_experiment_by_name(name: str) -> Any:
        number = module.experiments.get((module.uri, name))
        return None if number is None else SimpleNamespace(experiment_id=number)

    def create_experiment(name: str) -> str:
        assert (module.uri, name) not in module.experiments
        module.experiments[module.uri, name] = str(len(module.experiments) + 1)
        return module.experiments[module.uri, name]

    def set_experiment(name: str) -> None:
        found = get_experiment_by_name(name)
        module.tracking.fluent._active_experiment_id = found.experiment_id if found else create_experiment(name)

    module.set_tracking_uri, module.set_experiment = set_tracking_uri, set_experiment
    module.get_experiment_by_name, module.create_experiment = get_experiment_by_name, create_experiment

    params: dict[str, str] = {}

    def log_params(given: dict[str, Any]) -> None:
        module.calls.append(("log_params", (given,), {}))
        for name, value in given.items():
            if params.setdefault(name, str(value)) != str(value):
                raise ValueError("Changing param values is not allowed")

    module.log_params = log_params
    module.get_run = lambda run_id: SimpleNamespace(data=SimpleNamespace(params=params))

    runs: dict[str, Any] = {}

    def start_run(run_id: str | None = None, run_name: str | None = None, experiment_id: str | None = None) -> Any:
        assert module.active is None
        chosen = module.tracking.fluent._active_experiment_id
        module.calls.append(("start_run", (), {"run_id": run_id, "run_name": run_name}))
        module.count += run_id is None
        if run_id is None:
            params.clear()
            runs[f"run{module.count}"] = (module.uri, experiment_id or chosen or "0")
        elif chosen not in (None, runs[run_id][1]):
            raise ValueError("active experiment ID does not match environment run ID")
        module.active = SimpleNamespace(info=SimpleNamespace(run_id=run_id or f"run{module.count}"))
        return module.active

    def end_run(status: str = "FINISHED") -> None:
        module.calls.append(("end_run", (), {"status": status}))
        module.active = None

    def log_artifact(path: str, artifact_path: str | None = None) -> None:
        module.calls.append(("log_artifact", (Path(path).name, Path(path).is_file()), {"artifact_path": artifact_path}))

    module.start_run, module.end_run, module.log_artifact = start_run, end_run, log_artifact
    module.active_run, module.runs = lambda: module.active, runs
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return module


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = ModuleType("wandb")
    module.calls, module.run = Calls(), None

    class Artifact:
        def __init__(self, name: str, type: str) -> None:
            self.name, self.type, self.files = name, type, []

        def add_file(self, path: str) -> None:
            assert Path(path).is_file()
            self.files.append(Path(path).name)

    class Run:
        def __init__(self, id: str, config: dict[str, Any]) -> None:
            self.id, self.config = id, dict(config)

        def log(self, *args: Any, **options: Any) -> None:
            module.calls.append(("log", args, options))

        def log_artifact(self, artifact: Any) -> None:
            module.calls.append(("log_artifact", (artifact.name, artifact.type, artifact.files), {}))

        def finish(self, exit_code: int | None = None) -> None:
            module.calls.append(("finish", (), {"exit_code": exit_code}))
            module.run = None

    def init(**options: Any) -> Any:
        module.calls.append(("init", (), options))
        module.run = module.run or Run(options.get("id", "new"), options["config"])
        return module.run

    module.init, module.Artifact = init, Artifact
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def trainer(*callbacks: Any) -> training.Trainer:
    return training.Trainer(nn.Linear(1, 1), "mse", optim.SGD(0.05, momentum=0.5), callbacks=callbacks)


class Fails(training.Callback):
    def __init__(self, error: BaseException, when: str = "on_epoch_end") -> None:
        def fail(*args: Any) -> None:
            raise error

        setattr(self, when, fail)


def test_mlflow_logs_a_run(mlflow: Any) -> None:
    log = training.MLflow("sums", "first", tracking_uri="file:store", every=2, checkpoints=2, params={"data": "line"})
    history = trainer(log).fit(X, Y, epochs=2, batch_size=2, validation_data=(X, Y))
    calls = mlflow.calls
    assert mlflow.runs == {"run1": ("file:store", mlflow.experiments["file:store", "sums"])}
    assert calls.named("start_run") == [((), {"run_id": None, "run_name": "first"})]
    ((params,), _) = calls.named("log_params")[0]
    assert params == {
        "model": "Linear",
        "parameters": 2,
        "backend": "numpy",
        "loss": "mean_squared_error",
        "batch_size": 2,
        "accumulate": 1,
        "optimizer": "SGD",
        "learning_rate": 0.05,
        "optimizer.momentum": 0.5,
        "optimizer.nesterov": False,
        "optimizer.dampening": 0.0,
        "optimizer.weight_decay": 0.0,
        "data": "line",
    }
    logged = [(figures, options["step"]) for (figures,), options in calls.named("log_metrics")]
    steps = [(figures["step/loss"], step) for figures, step in logged if "step/loss" in figures]
    assert steps == [(pytest.approx(history.steps[1]), 2), (pytest.approx(history.steps[3]), 4)]
    epochs = [(figures, step) for figures, step in logged if "epoch" in figures]
    assert [(figures["epoch"], step) for figures, step in epochs] == [(1, 2), (2, 4)]
    assert epochs[1][0]["val_loss"] == history.epochs[1]["val_loss"]
    assert calls.named("log_artifact") == [(("epoch-2.safetensors", True), {"artifact_path": "checkpoints"})]
    assert calls.named("end_run") == [((), {"status": "FINISHED"})]


@pytest.mark.parametrize(
    ("error", "status", "code"), [(ValueError("no"), "FAILED", 1), (KeyboardInterrupt(), "KILLED", 1)]
)
@pytest.mark.parametrize("when", ["on_fit_begin", "on_step_end", "on_epoch_end"])
def test_a_failure_closes_the_runs(mlflow: Any, wandb: Any, error: Any, status: str, code: int, when: str) -> None:
    with pytest.raises(type(error)):
        trainer(training.MLflow(), training.WandB(), Fails(error, when)).fit(X, Y)
    assert mlflow.calls.named("end_run") == [((), {"status": status})]
    assert wandb.calls.named("finish") == [((), {"exit_code": code})]


def test_one_that_fails_at_the_end_leaves_no_other_open(mlflow: Any) -> None:
    with pytest.raises(ValueError, match="late"):
        trainer(Fails(ValueError("late"), "on_fit_end"), training.MLflow()).fit(X, Y)
    assert mlflow.calls.named("end_run") == [((), {"status": "FINISHED"})]


def test_an_active_run_is_used_and_left_open(mlflow: Any) -> None:
    mlflow.start_run()
    trainer(training.MLflow("ignored", tracking_uri="ignored")).fit(X, Y)
    assert len(mlflow.calls.named("start_run")) == 1
    assert not mlflow.calls.named("end_run")
    assert not mlflow.experiments
    assert mlflow.active is not None


def test_the_experiment_and_the_address_of_mlflow_stay(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fluent = mlflow.tracking.fluent
    trainer(training.MLflow("digits", tracking_uri="other")).fit(X, Y)
    assert (mlflow.uri, fluent._active_experiment_id) == (None, None)
    mlflow.set_tracking_uri("mine")
    mlflow.set_experiment("first")
    chosen = fluent._active_experiment_id
    for _ in range(2):
        trainer(training.MLflow("digits", tracking_uri="other")).fit(X, Y)
        assert (mlflow.uri, fluent._active_experiment_id) == ("mine", chosen)
    with pytest.raises(ValueError, match="no"):
        trainer(training.MLflow("digits", tracking_uri="other"), Fails(ValueError("no"))).fit(X, Y)
    assert mlflow.uri == "mine"

    def fail(name: str) -> Any:
        raise ValueError("no experiment")

    monkeypatch.setattr(mlflow, "create_experiment", fail)
    with pytest.raises(ValueError, match="no experiment"):
        trainer(training.MLflow("new", tracking_uri="other")).fit(X, Y)
    assert mlflow.uri == "mine"
    assert set(mlflow.experiments) == {("other", "digits"), ("mine", "first")}
    assert set(mlflow.runs.values()) == {("other", mlflow.experiments["other", "digits"])}


def test_an_experiment_may_be_created_by_another_process(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create = mlflow.create_experiment

    def lose(name: str) -> Any:
        create(name)
        raise ValueError("RESOURCE_ALREADY_EXISTS")

    monkeypatch.setattr(mlflow, "create_experiment", lose)
    trainer(training.MLflow("digits")).fit(X, Y)
    assert mlflow.runs == {"run1": (None, mlflow.experiments[None, "digits"])}


def test_parameters_of_an_active_run_stay(mlflow: Any, wandb: Any) -> None:
    mlflow.start_run()
    trainer(training.MLflow(params={"seed": 1})).fit(X, Y)
    with pytest.warns(UserWarning, match="MLflow: the active run has other values of batch_size, seed, which stay"):
        trainer(training.MLflow(params={"seed": 2, "fold": 2})).fit(X, Y, batch_size=2)
    assert mlflow.calls.named("log_params")[1] == (({"fold": 2},), {})
    wandb.init(config={"optimizer": "Adam", "data": "line"})
    with pytest.warns(UserWarning, match="WandB: the active run has other values of optimizer, which stay"):
        trainer(training.WandB("ignored", every=None)).fit(X, Y)
    assert (wandb.run.config["optimizer"], wandb.run.config["batch_size"]) == ("Adam", 32)


def test_an_active_run_of_wandb_is_used_and_left_open(wandb: Any) -> None:
    wandb.init(config={})
    for _ in range(2):
        trainer(training.WandB("ignored", every=None)).fit(X, Y)
    assert len(wandb.calls.named("init")) == 1
    assert not wandb.calls.named("finish")
    # The steps of a second training are lower, and wandb drops figures of lower steps.
    assert [(figures["step"], options) for (figures,), options in wandb.calls.named("log")] == [(1, {}), (1, {})]
    trainer(training.WandB(reinit="finish_previous")).fit(X, Y)
    assert len(wandb.calls.named("init")) == 2


def test_a_start_that_fails_leaves_no_run_open(mlflow: Any, wandb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise ValueError("no")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow, "log_params", fail)
        with pytest.raises(ValueError, match="no"):
            trainer(training.MLflow()).fit(X, Y)
    assert mlflow.active is None
    assert mlflow.calls.named("end_run") == [((), {"status": "FAILED"})]
    for module, log in ((mlflow, training.MLflow()), (wandb, training.WandB())):
        name = "start_run" if module is mlflow else "init"
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(ValueError, match="no"):
                trainer(log).fit(X, Y)
        trainer(log).fit(X, Y)
    assert mlflow.calls.named("end_run")[1:] == [((), {"status": "FINISHED"})]


def test_callbacks_are_pickled_after_training(mlflow: Any, wandb: Any) -> None:
    for log in (training.MLflow(), training.WandB()):
        trainer(log).fit(X, Y)
        assert pickle.loads(pickle.dumps(log)).run_id == log.run_id is not None


def test_a_resumed_training_continues_its_run(mlflow: Any, wandb: Any, tmp_path: Path) -> None:
    def made() -> training.Trainer:
        return trainer(training.MLflow(), training.WandB(), training.Checkpoint(tmp_path))

    made().fit(X, Y, epochs=1)
    made().fit(X, Y, epochs=2, resume=tmp_path)
    assert [options["run_id"] for _, options in mlflow.calls.named("start_run")] == [None, "run1"]
    assert len(mlflow.calls.named("log_params")) == 1
    assert [options.get("resume") for _, options in wandb.calls.named("init")] == [None, "allow"]
    assert wandb.calls.named("init")[1][1]["id"] == "new"
    # Also after another experiment has been chosen, which stays chosen, and with further parameters.
    mlflow.set_experiment("other")
    more = training.MLflow(params={"fold": 1}), training.Checkpoint(tmp_path)
    trainer(*more).fit(X, Y, epochs=3, resume=tmp_path)
    assert mlflow.calls.named("start_run")[-1][1]["run_id"] == "run1"
    assert mlflow.calls.named("log_params")[1:] == [(({"fold": 1},), {})]
    assert mlflow.tracking.fluent._active_experiment_id == mlflow.experiments[None, "other"]
    again = training.MLflow(params={"fold": 2}), training.Checkpoint(tmp_path)
    with pytest.warns(UserWarning, match="MLflow: the run has other values of fold, which stay as they are$"):
        trainer(*again).fit(X, Y, epochs=4, resume=tmp_path)
    # A training that is not resumed is another run, also of the same callback.
    log = training.MLflow()
    for _ in range(2):
        trainer(log).fit(X, Y, epochs=1)
        assert mlflow.calls.named("start_run")[-1][1]["run_id"] is None


def test_wandb_logs_a_run(wandb: Any) -> None:
    log = training.WandB("project", "name", every=None, checkpoints=1, mode="offline", params={"seed": 1})
    trainer(log).fit(X, Y, epochs=1, batch_size=2)
    ((), options) = wandb.calls.named("init")[0]
    assert (options["project"], options["name"], options["mode"]) == ("project", "name", "offline")
    assert (options["config"]["optimizer"], options["config"]["seed"]) == ("SGD", 1)
    ((figures,), at) = wandb.calls.named("log")[0]
    assert (figures["epoch"], at) == (1, {"step": 2})
    assert wandb.calls.named("log_artifact") == [(("checkpoint-new", "model", ["epoch-1.safetensors"]), {})]
    assert wandb.calls.named("finish") == [((), {"exit_code": 0})]


@pytest.mark.parametrize(("kind", "library"), [(training.MLflow, "mlflow"), (training.WandB, "wandb")])
def test_a_missing_library_is_named(kind: Any, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{kind.__name__} requires {library}: pip install 'ember-ml\[{library}\]'"):
        trainer(kind()).fit(X, Y)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="MLflow: every must be None or >= 1, got 0"):
        training.MLflow(every=0)
    with pytest.raises(ValueError, match="WandB: checkpoints must be None or >= 1, got -1"):
        training.WandB(checkpoints=-1)
    with pytest.raises(TypeError, match="MLflow: params must be a dictionary, got"):
        training.MLflow(params=[1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="MLflow: every must be None or an integer, got '10'"):
        training.MLflow(every="10")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"TensorBoard: every must be an integer, got 2\.5"):
        training.TensorBoard("folder", every=2.5)  # type: ignore[arg-type]


def test_callbacks_are_told_of_errors() -> None:
    seen: list[Any] = []
    note = training.LambdaCallback(
        on_exception=lambda trainer, error: seen.append(error), on_fit_end=lambda trainer: seen.append("end")
    )
    error = ValueError("no")
    with pytest.raises(ValueError, match="no"):
        trainer(note, Fails(error)).fit(X, Y)
    assert seen == [error, "end"]
