"""The public API: each name and its module, once, for type checkers and for ``__init__.py``."""

from .checking.check import check as check
from .errors import DataError as DataError
from .errors import GevalError as GevalError
from .errors import MalformedLineError as MalformedLineError
from .errors import UsageError as UsageError
from .evaluation import Evaluation as Evaluation
from .evaluation import Evaluations as Evaluations
from .evaluation import evaluate as evaluate
from .evaluation import evaluate_all as evaluate_all
from .evaluation import score as score
from .evaluation import score_file as score_file
from .explaining.comparison import compare as compare
from .explaining.mixing import improve as improve
from .modelling.ngram_model import NgramModel as NgramModel
from .modelling.predicting import predict as predict
from .reading.challenge import Challenge as Challenge
from .reading.outputs import read_output as read_output
from .reading.wordprobs import parse_line as parse_line
from .scoring.metric import Metric as Metric
from .scoring.writing import format_line as format_line
from .scoring.writing import write_output as write_output
from .version import __version__ as __version__
